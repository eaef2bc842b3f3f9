import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPractice } from '../../src/providers/practice/index.ts'
import type { JobWatch } from '../support/watch.ts'
import { Trial } from './faults.ts'
import { examples, Installation, programs, python, root, whyNoPython } from './support.ts'

let portal: Installation
beforeAll(async () => void (portal = await Installation.open()))
afterAll(() => portal.close())

if (python === null) console.warn(`jobs in Python are not moved: ${whyNoPython}`)

// long enough that it still runs when a busy machine comes to the second move
const steps = 900
const languages = [
  {
    language: 'Python',
    missing: python === null,
    training: [python ?? '', join(examples, 'train.py')],
    connection: [python ?? '', join(examples, 'open_connection.py')],
    refused: ["state.link['socket']"],
    bare: { PYTHONPATH: join(root, 'sdk/python') },
  },
  {
    language: 'Node',
    missing: false,
    training: [process.execPath, join(examples, 'train.mjs')],
    connection: [process.execPath, join(examples, 'open-connection.mjs')],
    refused: ['state.link.socket'],
    bare: {},
  },
]

/** What a training printed, but for which attempt it was. */
const results = (log: string): readonly string[] =>
  log
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/ +attempt \d+$/, ''))

describe.each(languages)('$language', ({ missing, training, connection, refused, bare }) => {
  test.skipIf(missing)(
    'J-SAFE-1 a training that is suspended, resumed and moved twice ends with the very bits of one left alone',
    async () => {
      const [program = '', ...args] = [...training, '--steps', String(steps)]
      const alone = spawnSync(program, args, { env: { PATH: process.env['PATH'], ...bare }, encoding: 'utf8' })
      expect(alone).toMatchObject({ status: 0, stderr: '' })
      expect(alone.stdout).toMatch(/final weights sha256:[0-9a-f]{64}\n$/)

      const { person } = portal
      const job = await portal.run({ command: [program, ...args, '--pace', '0.015'], on: 'practice/north-1' })
      await job.line('step    90')
      expect(await person.run(['suspend', job.name])).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('is suspended'),
      })
      expect((await job.view()).state).toBe('suspended')
      expect(await person.run(['resume', job.name])).toMatchObject({ code: 0 })
      await job.line('step   270')
      const moved = await person.run(['move', job.name, '--on', 'practice/south-1'])
      expect(moved).toMatchObject({ code: 0, stdout: expect.stringContaining('moved from practice/north-1') })
      await job.line('step   450')
      expect(await person.run(['move', job.name, '--on', 'this-machine', '--json'])).toMatchObject({ code: 0 })
      expect(await job.view()).toMatchObject({ state: 'running', offer: 'this-machine', attempt: 4 })

      const followed = await person.run(['logs', '-f', job.name])
      expect(results(followed.stdout)).toEqual(results(alone.stdout))
    },
  )

  test.skipIf(missing)(
    'J-STRICT-1 an open connection refuses suspension and move, by its path; the job runs on as if nobody had asked',
    async () => {
      const job = await portal.run({ command: connection, on: 'practice/north-1' })
      await job.line('step 0:')
      for (const asked of [
        ['suspend', job.name],
        ['move', job.name, '--on', 'practice/south-1'],
      ]) {
        const { code, stderr } = await portal.person.run(asked)
        expect(code).toBe(3)
        for (const path of refused) expect(stderr).toContain(path)
        expect(stderr).toContain('runs on')
        const data = await portal.person.run([...asked, '--json'])
        expect(data.code).toBe(3)
        expect(JSON.parse(data.stdout)).toMatchObject({
          error: {
            code: 'checkpoint_refused',
            facts: { refused: refused.map((path) => expect.objectContaining({ path })) },
          },
        })
      }
      await job.line('step 100:')
      const { state, attempt } = await job.view()
      expect({ state, attempt }).toEqual({ state: 'running', attempt: 1 })
      await portal.client.stop({ params: { ref: job.id }, body: { now: true } })
      await job.state('stopped')
    },
  )
})

test('a move without a better place says so, and nothing is asked of the job', async () => {
  const trial = await Trial.begin(portal)
  await portal.client.practicePrice({ body: { offer: 'practice/north-1', amount: '0.000001' } })
  const cheapest = await portal.run({ command: ['sleep', '60'], on: 'practice/north-1' })
  await cheapest.event('started')
  const { code, stderr } = await portal.person.run(['move', cheapest.name])
  expect(stderr).toContain('no better place')
  expect(code).toBe(1)
  await portal.client.practiceReset()
  await portal.client.stop({ params: { ref: cheapest.id }, body: { now: true } })
  await trial.finish(await trial.rest())
  await trial.wasSeamless()
})

/** The machine is gone, as its provider sees it, whether or not a control plane looks. */
async function taken(job: JobWatch): Promise<void> {
  const practice = await openPractice({
    home: portal.home,
    practiceEntry: programs.practice,
    agentEntry: programs.agent,
  })
  const until = performance.now() + 30_000
  for (;;) {
    const machine = (await practice.listMachines()).find(({ rowId }) => rowId === `${job.id}.1`)
    if (machine?.state === 'ended') return
    if (performance.now() > until) throw new Error(`the machine is ${machine?.state}`)
    await sleep(50)
  }
}

describe('J-SPOT-1 a notice saves and suspends the job, and J-NEVER-1 nobody but a person resumes it', () => {
  test('with a control plane', async () => {
    const trial = await Trial.begin(portal)
    await portal.client.practiceNotice({ body: { machine: trial.job.name, length: 20_000 } })
    const view = await trial.job.state('suspended')
    expect(view.why).toMatchObject({ code: 'spot.notice' })
    const explained = await portal.person.run(['explain', trial.job.name])
    expect(explained.stdout).toContain('will be taken')
    // J-SPOT-5: the pool that was reclaimed is left out
    await trial.finish(view)
    await trial.wasSeamless()
    expect((await trial.job.view()).attempt).toBe(2)
  })

  test('without one: the agent saves alone, and the next control plane finds the job safe', async () => {
    const trial = await Trial.begin(portal)
    const practice = await openPractice({
      home: portal.home,
      practiceEntry: programs.practice,
      agentEntry: programs.agent,
    })
    await portal.kill('control plane')
    await practice.notice(`${trial.job.id}.1`, 4000)
    await taken(trial.job)
    const made = trial.steps().length
    await portal.serve()
    const view = await trial.job.state('suspended')
    expect(view.checkpoint).toMatchObject({ verified: true })
    // what the agent decided alone is told though its machine is gone
    expect((await trial.job.event('notice')).why?.sentence).toContain('alone, because of a notice')
    expect(trial.steps()).toHaveLength(made)
    await trial.finish(view)
    await trial.wasSeamless()
  })
})

test('J-LOST-1 a machine that is taken without a word: suspended on the last checkpoint, or lost by name', async () => {
  const [saved, unsaved] = [await Trial.begin(portal), await Trial.begin(portal)]
  await portal.client.suspend({ params: { ref: saved.job.id } })
  await saved.job.state('suspended')
  await portal.client.resume({ params: { ref: saved.job.id } })
  await saved.rest()
  for (const { job } of [saved, unsaved]) await portal.client.practiceReclaim({ body: { machine: job.name } })
  const view = await saved.job.state('suspended')
  expect(view.why).toMatchObject({ code: 'lost.suspended', sentence: expect.stringContaining('is gone') })
  await saved.finish(view)
  expect((await unsaved.job.state('failed')).why).toMatchObject({ code: 'lost.failed' })
})

test('a command line that is killed has asked already: what it asked for goes on without it', async () => {
  const trial = await Trial.begin(portal)
  const suspending = portal.person.start(['suspend', trial.job.name])
  await trial.job.step('probe')
  suspending.child.kill('SIGKILL')
  const view = await trial.job.state('suspended')
  await trial.finish(view)
  await trial.wasSeamless()

  const gate = join(portal.outside, 'followed')
  const running = portal.person.start([
    'run',
    '--no-workdir',
    '--name',
    'followed',
    '--',
    'sh',
    '-c',
    `echo in; while [ ! -e ${gate} ]; do sleep 0.05; done; echo out`,
  ])
  await running.until('in')
  running.child.kill('SIGKILL')
  await running.done
  writeFileSync(gate, '')
  expect((await portal.person.run(['logs', '-f', 'followed'])).stdout).toBe('in\nout\n')
})
