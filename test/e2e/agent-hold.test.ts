import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { directoryStore, readManifest, seal } from '../../src/checkpoints/index.ts'
import type { JobStart } from '../../src/contract/agent.ts'
import { FakeControl, FakeMachine, jobStart, pause, run, settings, until } from './agent-support.ts'

/** A machine and the control plane that orders it: one each, so that each hears only its own. */
class Station {
  readonly control = new FakeControl()
  machine!: FakeMachine

  async start(): Promise<void> {
    await this.control.listen()
    this.machine = new FakeMachine(this.control, { checkpoints })
    this.machine.start()
  }

  lastStep(attempt = 'job1.1'): number {
    // the SDK says something of its own between the job's lines where a save failed
    const steps = this.control
      .log(attempt)
      .split('\n')
      .filter((line) => /^\d/.test(line))
    return Number(steps.at(-1)?.split(' ')[0] ?? -1)
  }

  async runningAt(start: JobStart, step = 3): Promise<void> {
    this.control.order('job1.1', 1, run(start))
    await this.control.reported('job1.1', ({ method }) => method === 'sdk')
    await until(() => this.lastStep() >= step)
  }

  /** Stands still: not one line more in a while. */
  async standsStill(attempt = 'job1.1'): Promise<boolean> {
    const file = join(this.machine.attempt(attempt), 'log')
    const before = statSync(file).size
    await pause(250)
    return statSync(file).size === before
  }

  async destroy(failed: boolean): Promise<void> {
    const file = join(this.machine.folder, 'agent.jsonl')
    if (failed) console.log(this.machine.output, existsSync(file) ? readFileSync(file, 'utf8').slice(-5000) : '')
    await this.machine.destroy()
    await this.control.cut()
  }
}

let checkpoints: string
let stations: Station[]

const station = async (): Promise<Station> => {
  const one = new Station()
  stations.push(one)
  await one.start()
  return one
}

beforeEach(() => {
  checkpoints = mkdtempSync(join(tmpdir(), 'portal-checkpoints-'))
  stations = []
})
afterEach(async ({ task }) => {
  for (const one of stations) await one.destroy(task.result?.state === 'fail')
  rmSync(checkpoints, { recursive: true, force: true })
})

/** Counts to `to` in steps of 20 ms; each line says the step and a sum that only a whole state can give. */
const python = (to: number, extra = ''): string[] => [
  'python3',
  '-c',
  `
import portal, time, sys
job = portal.job()
${extra}
state = job.state(step=0, total=0, seen=[]${extra ? ', more=more' : ''})
for step in job.steps(state, 'step', ${to}):
    state.total = state.total * 31 % 1000003 + step
    state.seen.append(step)
    print(step, state.total, flush=True)
    time.sleep(0.02)
print('end', state.total, len(state.seen), state.seen == list(range(${to})))
`,
]

const node = (to: number): string[] => [
  process.execPath,
  '--input-type=module',
  '-e',
  `
import { job } from 'portal/sdk'
const state = await job.state({ step: 0, total: 0, seen: [] })
for await (const step of job.stepsAsync(state, 'step', ${to})) {
  state.total = (state.total * 31) % 1000003 + step
  state.seen.push(step)
  console.log(step, state.total)
  await new Promise((resolve) => setTimeout(resolve, 20))
}
console.log('end', state.total, state.seen.length, state.seen.every((one, index) => one === index))
`,
]

const linesOf = (count: number): string[] => {
  let total = 0
  return Array.from({ length: count }, (_, step) => `${step} ${(total = ((total * 31) % 1000003) + step)}`)
}

/** With its methods taken out. */
const bound = (one: Station) => ({
  control: one.control,
  machine: one.machine,
  runningAt: one.runningAt.bind(one),
  standsStill: one.standsStill.bind(one),
  lastStep: one.lastStep.bind(one),
})

const chain = async () => ({ store: await directoryStore(checkpoints), jobId: 'job1', key: Buffer.alloc(32, 7) })

const hold = (move: string, change: { holdFor?: number; safePointWait?: number } = {}) =>
  ({ do: 'hold', move, holdFor: 60_000, safePointWait: 10_000, ...change }) as const

describe.each([
  ['python', python],
  ['node', node],
])('a %s job', (_, program) => {
  test('J-SAFE-1 is held, restored elsewhere, killed while held, and goes on there as if nothing had happened', async () => {
    const start = jobStart(program(60))
    const [source, target] = [await station(), await station()]
    await source.runningAt(start)
    source.control.order('job1.1', 2, { do: 'probe', move: 'm1' })
    const probed = await source.control.reported('job1.1', ({ probe }) => probe?.move === 'm1')
    expect(probed.probe).toMatchObject({ refused: [], why: null })
    source.control.order('job1.1', 3, hold('m1'))
    const { held, saved } = await source.control.reported('job1.1', ({ phase }) => phase === 'held')
    expect(held).toMatchObject({ move: 'm1', slot: 1, because: 'order' })
    expect(saved).toMatchObject({ slot: 1 })
    await until(() => source.control.log('job1.1').length === held?.logOffset)

    // the target restores while the source stands still; it does not execute
    target.control.order('job1.2', 3, { do: 'prepare', start: { ...start, lastSlot: 1 }, slot: 1 })
    await target.control.reported('job1.2', ({ phase }) => phase === 'prepared')
    expect(await source.standsStill()).toBe(true)
    expect(target.control.log('job1.2')).toBe('')

    source.control.order('job1.1', 4, { do: 'promise', move: 'm1' })
    await source.control.reported('job1.1', ({ phase, promised }) => phase === 'promised' && promised === 'm1')
    expect((await seal({ ...(await chain()), after: 1, by: 'm1' })).sealedSlot).toBe(2)
    source.control.order('job1.1', 5, { do: 'kill-held', move: 'm1' })
    const next = { ...start, lastSlot: 2 }
    target.control.order('job1.2', 5, run(next, { slot: 1, lastSlot: 2 }))
    const { exit } = await source.control.reported('job1.1', (report) => report.exit)
    expect(exit).toMatchObject({ how: 'killed-held', code: null })
    expect(source.machine.left()).toEqual([])
    await target.control.reported('job1.2', (report) => report.exit?.code === 0)

    await until(() => target.control.log('job1.2').includes('end'))
    const lines = (source.control.log('job1.1') + target.control.log('job1.2')).split('\n')
    expect(lines.slice(0, 60)).toEqual(linesOf(60))
    expect(lines[60]).toMatch(/end \d+ 60 (True|true)/)
  })

  test('held and promised, then let go by an abort, runs on; its next save is behind the seal', async () => {
    const start = jobStart(program(80))
    const { control, runningAt, standsStill } = bound(await station())
    await runningAt(start)
    control.order('job1.1', 2, hold('m1'))
    await control.reported('job1.1', ({ phase }) => phase === 'held')
    control.order('job1.1', 3, { do: 'promise', move: 'm1' })
    await control.reported('job1.1', ({ phase, promised }) => phase === 'promised' && promised === 'm1')
    expect(await standsStill()).toBe(true)
    expect((await seal({ ...(await chain()), after: 1, by: 'm1' })).sealedSlot).toBe(2)

    // an order that names no move lets nothing go
    control.order('job1.1', 4, run(start, { aborted: null, lastSlot: 2 }))
    expect(await standsStill()).toBe(true)
    control.order('job1.1', 5, run(start, { aborted: 'm1', lastSlot: 2 }))
    await control.reported('job1.1', ({ phase }) => phase === 'running')
    control.order('job1.1', 6, hold('m2'))
    expect((await control.reported('job1.1', ({ held }) => held?.move === 'm2')).held?.slot).toBe(3)
    control.order('job1.1', 7, run(start, { aborted: 'm2', lastSlot: 4 }))
    await control.reported('job1.1', ({ exit }) => exit?.code === 0)
    await until(() => control.log('job1.1').includes('end'))
    expect(control.log('job1.1').split('\n').slice(0, 80)).toEqual(linesOf(80))
    expect(control.log('job1.1')).toMatch(/end \d+ 80 (True|true)/)
  })
})

describe('held', () => {
  test('without a promise for too long: the move is void, first on disk, and the job runs on', async () => {
    const { control, runningAt, machine } = bound(await station())
    const start = jobStart(python(60))
    await runningAt(start)
    control.order('job1.1', 2, hold('m1', { holdFor: 600 }))
    await control.reported('job1.1', ({ phase }) => phase === 'held')
    const after = await control.reported('job1.1', ({ phase }) => phase === 'running')
    expect(after.voided).toEqual(['m1'])
    expect(after.told.map(({ code }) => code)).toContain('agent.voided')
    // a promise that comes too late is not made; a hold for it is not taken up again, by the next agent neither
    control.order('job1.1', 3, { do: 'promise', move: 'm1' })
    await machine.restart()
    control.order('job1.1', 4, hold('m1'))
    await pause(400)
    expect(control.report('job1.1')).toMatchObject({ promised: null, held: null, voided: ['m1'] })
    control.order('job1.1', 5, run(start, { aborted: 'm1', lastSlot: 2 }))
    await control.reported('job1.1', ({ exit }) => exit?.code === 0)
    await until(() => control.log('job1.1').includes('end'))
    expect(control.log('job1.1').split('\n').slice(0, 60)).toEqual(linesOf(60))
  })

  test('after its promise it waits without limit, though nobody can be reached', async () => {
    const { control, runningAt, standsStill } = bound(await station())
    await runningAt(jobStart(python(60)))
    control.order('job1.1', 2, hold('m1', { holdFor: 500 }))
    await control.reported('job1.1', ({ phase }) => phase === 'held')
    control.order('job1.1', 3, { do: 'promise', move: 'm1' })
    await control.reported('job1.1', ({ phase }) => phase === 'promised')
    await control.cut()
    await pause(900)
    expect(await standsStill()).toBe(true)
    await control.listen()
    control.order('job1.1', 4, { do: 'kill-held', move: 'm1' })
    expect((await control.reported('job1.1', ({ exit }) => exit)).exit?.how).toBe('killed-held')
  })

  test('J-LEASE-2 it still ends at its deadline', async () => {
    const { control, runningAt, machine } = bound(await station())
    control.leaseLength = 4000
    await runningAt(jobStart(python(600), { settings: settings({ leaseLength: 4000, leaseRenew: 1000 }) }))
    control.order('job1.1', 2, hold('m1'))
    await control.reported('job1.1', ({ phase }) => phase === 'held')
    control.leaseLength = null
    expect((await control.reported('job1.1', ({ exit }) => exit)).exit?.how).toBe('deadline')
    expect(machine.left()).toEqual([])
  })

  test('a stop lets it go first, then ends it', async () => {
    const { control, runningAt } = bound(await station())
    await runningAt(jobStart(python(600)))
    control.order('job1.1', 2, hold('m1'))
    await control.reported('job1.1', ({ phase }) => phase === 'held')
    control.order('job1.1', 3, { do: 'stop', grace: 3000, save: false, safePointWait: 1000, lastSlot: 0 })
    expect((await control.reported('job1.1', ({ exit }) => exit)).exit).toMatchObject({
      how: 'stopped',
      signal: 'SIGTERM',
    })
  })

  test('what kills it while it is held is told, and is no end of its own', async () => {
    const { control, runningAt, machine } = bound(await station())
    await runningAt(jobStart(python(600)))
    control.order('job1.1', 2, hold('m1'))
    await control.reported('job1.1', ({ phase }) => phase === 'held')
    const job = machine
      .left()
      .filter((pid) => /^[^\0]*python[^\0]*\0-c\0/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8')))
    expect(job.length).toBe(1)
    for (const pid of job) process.kill(pid, 'SIGKILL')
    expect((await control.reported('job1.1', ({ exit }) => exit)).exit).toMatchObject({ signal: 'SIGKILL' })
    expect(machine.left()).toEqual([])
  })
})

test('J-STOP-1 a stop keeps a checkpoint where the state can be carried', async () => {
  const { control, runningAt } = bound(await station())
  await runningAt(jobStart(python(600)))
  control.order('job1.1', 2, { do: 'stop', grace: 3000, save: true, safePointWait: 3000, lastSlot: 0 })
  const report = await control.reported('job1.1', ({ exit }) => exit)
  expect(report.exit?.how).toBe('stopped')
  expect(report.saved?.slot).toBe(1)
  expect((await readManifest(await chain(), 1)).token).toBe(1)
})

describe('J-STRICT-1 a refusal', () => {
  const withSocket = `
import socket
class Loader: pass
more = Loader()
more.sock = socket.socket()
`
  test('names every value, by its path, and the job runs on: at the probe and at the hold', async () => {
    const { control, runningAt, lastStep } = bound(await station())
    const start = jobStart(python(200, withSocket))
    await runningAt(start)
    control.order('job1.1', 2, { do: 'probe', move: 'm1' })
    const { probe } = await control.reported('job1.1', (report) => report.probe?.move === 'm1')
    expect(probe?.refused.map(({ path }) => path)).toEqual(['state.more.sock'])
    control.order('job1.1', 3, hold('m2'))
    const { saveRefused } = await control.reported('job1.1', (report) => report.saveRefused?.move === 'm2')
    expect(saveRefused?.refused[0]).toMatchObject({ path: 'state.more.sock' })
    const step = lastStep()
    await until(() => lastStep() > step + 3)
    expect(control.report('job1.1')).toMatchObject({ phase: 'running', held: null, saved: null })
  })

  test('a job that says nothing of its state is refused a move with that reason', async () => {
    const { control } = bound(await station())
    control.order('job1.1', 1, run(jobStart(['sleep', '60'], { checkpoint: 'none' })))
    await control.reported('job1.1', ({ phase }) => phase === 'running')
    control.order('job1.1', 2, { do: 'probe', move: 'm1' })
    const { probe, method } = await control.reported('job1.1', (report) => report.probe)
    expect(method).toBe('none')
    expect(probe?.why).toMatch(/--checkpoint none/)
    control.order('job1.1', 3, hold('m2'))
    const { saveRefused } = await control.reported('job1.1', (report) => report.saveRefused)
    expect(saveRefused).toMatchObject({ move: 'm2', refused: [] })
  })

  test('a job that reaches no safe point in time is refused by that name, and is not asked any more', async () => {
    const { control, machine } = bound(await station())
    const stuck = [
      'python3',
      '-c',
      'import portal, time\njob = portal.job()\nstate = job.state(step=0)\nprint("in", flush=True)\ntime.sleep(60)',
    ]
    control.order('job1.1', 1, run(jobStart(stuck)))
    await until(() => control.log('job1.1').includes('in'))
    control.order('job1.1', 2, hold('m1', { safePointWait: 500 }))
    const { saveRefused } = await control.reported('job1.1', (report) => report.saveRefused)
    expect(saveRefused?.why).toMatch(/no safe point within/)
    expect(readFileSync(join(machine.attempt('job1.1'), 'flag'))[0]).toBe(0)
  })
})

describe('J-SPOT-1 a notice', () => {
  const notice = (machine: FakeMachine, endsAt: number | null): void => {
    const path = join(machine.folder, 'metadata.json')
    writeFileSync(`${path}.new`, JSON.stringify({ notice: endsAt === null ? null : { endsAt } }))
    renameSync(`${path}.new`, path)
  }

  test('is saved and held at once, though the control plane cannot be reached, and told after', async () => {
    const { control, runningAt, machine, standsStill } = bound(await station())
    await runningAt(jobStart(python(600)))
    await control.cut()
    const from = Date.now()
    notice(machine, from + 30_000)
    await until(() => existsSync(join(checkpoints, 'slots', 'job1', '000001')))
    const took = Date.now() - from
    await pause(100)
    expect(await standsStill()).toBe(true)
    await control.listen()
    const report = await control.reported('job1.1', ({ held }) => held)
    expect(report.held).toMatchObject({ move: null, because: 'notice', slot: 1 })
    expect(report.told.map(({ code }) => code)).toContain('agent.notice')
    expect(control.machine?.notice?.endsAt).toBe(from + 30_000)
    console.log(`from the notice to the checkpoint: ${took} ms`)

    // the suspension that follows takes the hold over as it is
    control.order('job1.1', 2, { do: 'probe', move: 'm1' })
    control.order('job1.1', 3, hold('m1'))
    expect((await control.reported('job1.1', ({ held }) => held?.move === 'm1')).held?.slot).toBe(1)
    control.order('job1.1', 4, { do: 'promise', move: 'm1' })
    await control.reported('job1.1', ({ phase }) => phase === 'promised')
    control.order('job1.1', 5, { do: 'kill-held', move: 'm1' })
    expect((await control.reported('job1.1', ({ exit }) => exit)).exit?.how).toBe('killed-held')
  })

  test('that is withdrawn lets it run on', async () => {
    const { control, runningAt, machine } = bound(await station())
    await runningAt(jobStart(python(60)))
    notice(machine, Date.now() + 30_000)
    await control.reported('job1.1', ({ held }) => held?.because === 'notice')
    notice(machine, null)
    await control.reported('job1.1', ({ exit }) => exit?.code === 0)
    await until(() => control.log('job1.1').includes('end'))
    expect(control.log('job1.1').split('\n').slice(0, 60)).toEqual(linesOf(60))
    expect(control.report('job1.1')?.told.map(({ code }) => code)).toContain('agent.ran_on')
  })

  test('while a move holds it: when that move is aborted, the checkpoint stands and it stays held', async () => {
    const { control, runningAt, machine, standsStill } = bound(await station())
    const start = jobStart(python(600))
    await runningAt(start)
    control.order('job1.1', 2, hold('m1'))
    await control.reported('job1.1', ({ held }) => held?.move === 'm1')
    notice(machine, Date.now() + 30_000)
    control.order('job1.1', 3, run(start, { aborted: 'm1', lastSlot: 2 }))
    await control.reported('job1.1', ({ held }) => held && held.move === null)
    expect(await standsStill()).toBe(true)
  })

  test('refused: the job runs on until the machine is taken, and the values are named', async () => {
    const { control, runningAt, machine, lastStep } = bound(await station())
    await runningAt(jobStart(python(600, '\nimport socket\nmore = [socket.socket()]\n')))
    notice(machine, Date.now() + 20_000)
    const { saveRefused } = await control.reported('job1.1', (report) => report.saveRefused)
    expect(saveRefused).toMatchObject({ move: null, refused: [{ path: 'state.more[0]' }] })
    const step = lastStep()
    await until(() => lastStep() > step + 3)
  })
})

test('J-LEASE-2 before its hard stop the job is saved once more and held; a lease that comes after all lets it run on', async () => {
  const { control, runningAt } = bound(await station())
  control.leaseLength = 8000
  await runningAt(jobStart(python(300), { settings: settings({ leaseLength: 8000, leaseRenew: 1000 }) }))
  control.leaseLength = null
  const { held } = await control.reported('job1.1', (report) => report.held)
  expect(held).toMatchObject({ because: 'deadline', move: null, slot: 1 })
  control.leaseLength = 60_000
  const after = await control.reported('job1.1', ({ phase }) => phase === 'running', 8000)
  expect(after.exit).toBe(null)
})

test('J-FILE-2 declared outputs travel with the state, and lie there before the first line runs', async () => {
  const [source, target] = [await station(), await station()]
  const program = python(40).with(
    2,
    (python(40)[2] ?? '')
      .replace(
        'job = portal.job()',
        `
import os
os.makedirs('out', exist_ok=True)
print('#', sorted(os.listdir('out')), flush=True)
open('scratch', 'w').write('x')
job = portal.job()`,
      )
      .replace('    print(step', "    open('out/trace', 'a').write(str(step) + chr(10))\n    print(step"),
  )
  const start = jobStart(program, { outputs: ['out'] })
  source.control.order('job1.1', 1, run(start))
  await until(() => source.lastStep() >= 5)
  source.control.order('job1.1', 2, hold('m1'))
  const { held } = await source.control.reported('job1.1', (report) => report.held)
  await source.control.reported('job1.1', ({ undeclared }) => undeclared.includes('scratch'))
  target.control.order('job1.2', 2, run({ ...start, lastSlot: held?.slot ?? 0 }, { slot: held?.slot ?? 0 }))
  await target.control.reported('job1.2', ({ exit }) => exit?.code === 0)
  expect(target.control.log('job1.2')).toContain("# ['trace']")
  const archive = await until(() => target.control.outputs.get('job1.2'))
  expect(archive.toString()).toContain(Array.from({ length: 40 }, (_, step) => `${step}\n`).join(''))
})

describe('kill -9 of the agent', () => {
  test.each([0, 10, 30, 60, 100, 150, 250])(
    '%i ms after the order to hold: it comes to be held, and goes on whole',
    async (delay) => {
      const { control, runningAt, machine } = bound(await station())
      const start = jobStart(python(250))
      await runningAt(start)
      control.order('job1.1', 2, hold('m1'))
      await pause(delay)
      await machine.restart()
      const { held } = await control.reported('job1.1', (report) => report.held?.move === 'm1')
      expect((await readManifest(await chain(), held?.slot ?? 0)).token).toBe(1)
      control.order('job1.1', 3, { do: 'promise', move: 'm1' })
      await pause(delay / 3)
      await machine.restart()
      await control.reported('job1.1', ({ phase }) => phase === 'promised')
      control.order('job1.1', 4, run(start, { aborted: 'm1', lastSlot: (held?.slot ?? 0) + 1 }))
      await pause(delay / 3)
      await machine.restart()
      await control.reported('job1.1', ({ exit }) => exit?.code === 0)
      await until(() => control.log('job1.1').includes('end'))
      expect(control.log('job1.1').split('\n').slice(0, 250)).toEqual(linesOf(250))
      expect(control.log('job1.1')).toMatch(/end \d+ 250 True/)
    },
  )

  test.each([0, 50, 150, 300])('%i ms after the order to prepare: it comes to be prepared', async (delay) => {
    const [source, target] = [await station(), await station()]
    const start = jobStart(python(50))
    await source.runningAt(start)
    source.control.order('job1.1', 2, hold('m1'))
    const { held } = await source.control.reported('job1.1', (report) => report.held)
    target.control.order('job1.2', 2, { do: 'prepare', start: { ...start, lastSlot: 1 }, slot: held?.slot ?? 0 })
    await pause(delay)
    await target.machine.restart()
    await target.control.reported('job1.2', ({ phase }) => phase === 'prepared')
    await target.machine.restart()
    await target.control.reported('job1.2', ({ phase }) => phase === 'prepared')
    target.control.order('job1.2', 3, run({ ...start, lastSlot: 1 }, { slot: held?.slot ?? 0 }))
    await target.control.reported('job1.2', ({ exit }) => exit?.code === 0)
    await until(() => target.control.log('job1.2').includes('end'))
    expect(target.control.log('job1.2')).toMatch(/end \d+ 50 True/)
  })
})

test('a slot taken by someone else means that it is fenced: it ends itself', async () => {
  const { control, runningAt, machine } = bound(await station())
  await runningAt(jobStart(python(600)))
  await seal({ ...(await chain()), after: 0, by: 'lost job1.1' })
  control.order('job1.1', 2, hold('m1'))
  const report = await control.reported('job1.1', ({ exit }) => exit)
  expect(report.exit?.how).toBe('superseded')
  expect(report.told.map(({ code }) => code)).toContain('agent.fenced')
  expect(machine.left()).toEqual([])
})

test('a damaged checkpoint is never run from: the damage is named', async () => {
  const [source, target] = [await station(), await station()]
  const start = jobStart(python(100))
  await source.runningAt(start)
  source.control.order('job1.1', 2, hold('m1'))
  await source.control.reported('job1.1', (report) => report.held)
  const slot = join(checkpoints, 'slots', 'job1', '000001')
  const bytes = readFileSync(slot)
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1
  writeFileSync(slot, bytes)
  target.control.order('job1.2', 2, { do: 'prepare', start: { ...start, lastSlot: 1 }, slot: 1 })
  const { restoreFailed } = await target.control.reported('job1.2', (report) => report.restoreFailed)
  expect(restoreFailed).toMatchObject({ slot: 1 })
  expect(restoreFailed?.why).not.toBe('')
  expect(target.control.log('job1.2')).toBe('')
})

test('a full disk while saving: the save fails by name, the job runs on, and is saved when there is room again', async ({
  skip,
}) => {
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', checkpoints]).status !== 0)
    skip('no right to mount a small disk here')
  try {
    const { control, runningAt, lastStep } = bound(await station())
    const start = jobStart(python(400, '\nimport random\nmore = bytearray(random.Random(1).randbytes(300000))\n'))
    await runningAt(start)
    control.order('job1.1', 2, hold('m1'))
    const { saveRefused } = await control.reported('job1.1', (report) => report.saveRefused)
    expect(saveRefused).toMatchObject({ move: 'm1', refused: [] })
    expect(saveRefused?.why).toMatch(/no room|ENOSPC|full/i)
    const step = lastStep()
    await until(() => lastStep() > step + 3)
    expect(spawnSync('mount', ['-o', 'remount,size=16m', checkpoints]).status).toBe(0)
    control.order('job1.1', 3, hold('m2'))
    await control.reported('job1.1', ({ held }) => held?.move === 'm2')
  } finally {
    for (const one of stations) await one.machine.destroy()
    spawnSync('umount', ['-l', checkpoints])
  }
})
