import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { chainOn, readBytes } from '../../src/checkpoints/chain/testing.ts'
import {
  collect,
  directoryStore,
  newestManifest,
  readManifest,
  readRecord,
  verify,
} from '../../src/checkpoints/index.ts'
import { stateOf } from '../support/checkpoints/state.ts'

let folder: string
const children: { kill(): Promise<void> }[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portal-killed-'))
})
afterEach(async () => {
  for (const child of children.splice(0)) await child.kill()
  await rm(folder, { recursive: true })
})

const start = async (program: string) => {
  const path = fileURLToPath(new URL(`../support/checkpoints/${program}.ts`, import.meta.url))
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', path, folder], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  let errors = ''
  child.stderr.on('data', (bytes) => (errors += bytes))
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const running = {
    lines: () => said.trim().split('\n').slice(1),
    kill: async () => {
      child.kill('SIGKILL')
      await closed
      expect(errors).toBe('')
    },
  }
  children.push(running)
  await new Promise<void>((resolve) => {
    child.stdout.on('data', (bytes) => {
      said += bytes
      resolve()
    })
  })
  return running
}

test('K-WHOLE-5 writer and collector are killed at any moment, again and again: what was committed last is whole, and nothing else stays', async () => {
  const store = await directoryStore(folder)
  const chain = chainOn(store)
  let last = 0
  let dropped = 0
  for (let round = 0; round < 6; round++) {
    const [saving, collecting] = await Promise.all([start('keeps-saving'), start('keeps-collecting')])
    await new Promise((resolve) => setTimeout(resolve, 60 + 41 * round))
    await (round % 2 ? saving : collecting).kill()
    await new Promise((resolve) => setTimeout(resolve, 20))
    await Promise.all([saving.kill(), collecting.kill()])
    children.length = 0

    const told = Number(saving.lines().at(-1) ?? last)
    dropped += collecting.lines().reduce((sum, line) => sum + Number(line), 0)
    const { manifest, damaged, lastSlot } = await newestManifest(chain)
    expect(damaged).toEqual([])
    // one more may have been committed than it could say
    expect(lastSlot - told).toBeGreaterThanOrEqual(0)
    expect(lastSlot - told).toBeLessThanOrEqual(1)
    expect(manifest?.slot).toBe(lastSlot)
    for (const slot of await store.slots('job')) {
      const record = await readRecord(chain, slot)
      if (record?.is === 'dropped') continue
      expect(await readBytes(chain, await readManifest(chain, slot))).toEqual(stateOf(slot))
    }
    last = lastSlot
  }
  expect(last).toBeGreaterThan(8)
  expect(dropped).toBeGreaterThan(0)
  await collect({ ...chain, verified: last, keep: [] })
  const newest = await readManifest(chain, last)
  await verify(chain, newest)
  const orphansOfTheLast = (key: string) => Number(key.split('/')[1]) >= last
  const named = [newest.index.key, ...newest.packs.map(({ key }) => key)]
  expect((await store.list('job/')).filter((key) => !named.includes(key) && !orphansOfTheLast(key))).toEqual([])
})
