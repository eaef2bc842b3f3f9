import {
  appendFileSync,
  existsSync,
  globSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { homeFiles } from '../../src/contract/home.ts'
import type { PortalError } from '../../src/contract/errors.ts'
import { mountSmallDisk, whyNoSmallDisk, type SmallDisk } from '../support/disk.ts'
import { patient } from '../support/portal.ts'
import { Trial } from './faults.ts'
import { Installation } from './support.ts'

let portal: Installation
beforeAll(async () => void (portal = await Installation.open()))
afterAll(() => portal.close())

const suspended = async (env: Readonly<Record<string, string>> = {}): Promise<Trial> => {
  const trial = await Trial.begin(portal, env)
  await portal.client.suspend({ params: { ref: trial.job.id } })
  await trial.job.state('suspended')
  return trial
}

const flipped = (file: string): void => {
  const bytes = readFileSync(file)
  const at = bytes.length >> 1
  bytes[at] = (bytes[at] as number) ^ 1
  writeFileSync(file, bytes)
}

describe('K-WHOLE-2 a damaged checkpoint is never opened: the damage is named, the job stays suspended, and goes on once it is repaired', () => {
  const objects = 'objects/JOB/000001/*'
  test.each([
    ['one bit of its bytes', `${objects}/pack`, flipped, /chunk 0 of graph is damaged/],
    [
      'its bytes cut short',
      `${objects}/pack`,
      (file: string) => truncateSync(file, readFileSync(file).length >> 1),
      /is cut off at/,
    ],
    ['its bytes gone', `${objects}/pack`, (file: string) => rmSync(file), /pack is not there/],
    ['one bit of its index', `${objects}/index`, flipped, /index .* does not have its hash/],
    ['its manifest cut short', 'slots/JOB/000001', (file: string) => truncateSync(file, 40), /not a record/],
    [
      'its manifest forged',
      'slots/JOB/000001',
      (file: string) => writeFileSync(file, readFileSync(file, 'latin1').replace('"token":1', '"token":2'), 'latin1'),
      /changed or forged/,
    ],
  ])('%s', async (_what, pattern, damage, named) => {
    const trial = await suspended()
    const [file = ''] = globSync(join(homeFiles.checkpoints(portal.home), pattern.replace('JOB', trial.job.id)))
    const whole = readFileSync(file)
    damage(file)
    expect(existsSync(file) && readFileSync(file).equals(whole)).toBe(false)

    const { code, stderr } = await portal.person.run(['resume', trial.job.name])
    expect(code).toBe(1)
    expect(stderr).toMatch(new RegExp(`not resumed: .*checkpoint ${trial.job.id}/000001: .*its checkpoint is kept`))
    expect(stderr).toMatch(named)
    const view = await trial.job.state('suspended')
    expect(view.checkpoint).not.toBeNull()
    // nothing of it was executed: no attempt began but the first
    expect(new Set(trial.steps().map(({ attempt }) => attempt))).toEqual(new Set([1]))

    rmSync(file, { force: true })
    writeFileSync(`${file}.whole`, whole, { mode: 0o600 })
    renameSync(`${file}.whole`, file)
    await trial.finish(view)
    await trial.wasSeamless()
  })
})

test('J-RES-1 of two resumes at once one wins, and the other is told', async () => {
  const trial = await suspended()
  const asked = await Promise.allSettled(
    Array.from({ length: 4 }, () => portal.client.resume({ params: { ref: trial.job.id } })),
  )
  const lost = asked.filter((one) => one.status === 'rejected').map(({ reason }) => reason as PortalError)
  expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const { code } of lost) expect(code).toBeOneOf(['resume_lost', 'wrong_state', 'changed_meanwhile'])
  const view = await trial.rest()
  expect(view).toMatchObject({ state: 'running', attempt: 2 })
  await trial.finish(view)
  await trial.wasSeamless()
})

const noDisk = whyNoSmallDisk()
if (noDisk !== null) console.warn(`a full disk is not tested: ${noDisk}; run the tests as root`)

test.skipIf(noDisk !== null)(
  'K-STORE-2 a full disk while saving: the save fails by name, the job runs on, and is saved once there is room',
  async () => {
    const disks: SmallDisk[] = []
    const prepare = (home: string) => {
      const disk = mountSmallDisk(homeFiles.checkpoints(home), 4)
      disks.push(disk)
      return disk.remove
    }
    const full = await Installation.open(prepare)
    try {
      const trial = await Trial.begin(full, { BALLAST: '8000000' })
      const { code, stderr } = await full.person.run(['suspend', trial.job.name])
      expect(code).toBe(1)
      expect(stderr).toMatch(/no room|full|ENOSPC/i)
      expect(await trial.rest()).toMatchObject({ state: 'running', attempt: 1, checkpoint: null })
      disks[0]?.grow(64)
      expect(await full.person.run(['suspend', trial.job.name])).toMatchObject({ code: 0 })
      await trial.finish(await trial.job.state('suspended'))
      await trial.wasSeamless()
    } finally {
      await full.close()
    }
  },
)

test.skipIf(noDisk !== null)(
  'K-STORE-2 a full data directory: what needs room is refused by name, the control plane and the jobs go on, and all works once there is room',
  async () => {
    const full = await Installation.open((home) => mountSmallDisk(home, 16).remove)
    const { person } = full
    const filler = join(full.home, 'filler')
    try {
      const loop = 'while :; do echo line; sleep 0.02; done'
      expect(await person.run(['run', '--detach', '--name', 'steady', '--', 'sh', '-c', loop])).toMatchObject({
        code: 0,
      })
      await expect.poll(async () => (await person.run(['logs', 'steady'])).stdout, patient).toContain('line')
      const serving = person.servingPid()
      expect(() => {
        for (;;) appendFileSync(filler, Buffer.alloc(512))
      }).toThrow('ENOSPC')

      for (const words of [
        ['run', '--name', 'other', '--', 'true'],
        ['suspend', 'steady'],
      ]) {
        const { code, stderr } = await person.run(words)
        expect(code).toBe(1)
        expect(stderr).toMatch(/no room left on the disk/)
      }
      expect((await person.run(['ps'])).stdout).toMatch(/steady +running/)
      expect(person.servingPid()).toBe(serving)

      rmSync(filler)
      expect(await person.run(['run', '--name', 'other', '--', 'echo', 'hi'])).toMatchObject({
        code: 0,
        stdout: 'hi\n',
      })
      expect((await person.run(['ps'])).stdout).toMatch(/steady +running/)
      expect(await person.run(['stop', '--now', 'steady'])).toMatchObject({ code: 0 })
    } finally {
      rmSync(filler, { force: true })
      await full.close()
    }
  },
)
