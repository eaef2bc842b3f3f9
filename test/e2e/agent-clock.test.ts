import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import { type Clocks, systemClocks } from '../../src/agent/clock.ts'
import { probeConfinement } from '../../src/agent/keeper/confine.ts'
import { installKeeper } from '../../src/agent/keeper/index.ts'
import { metadataFile } from '../../src/agent/notice.ts'
import { memoryStore } from '../../src/checkpoints/index.ts'
import { FakeControl, jobStart, pause, run, settings, until } from './agent-support.ts'

let control: FakeControl
let data: string
let agent: Agent
/** how far boot time and the wall clock have run ahead of this machine's */
let ahead: { boot: number; wall: number }

beforeEach(async () => {
  control = new FakeControl()
  await control.listen()
  data = mkdtempSync(join(tmpdir(), 'portal-clock-'))
  ahead = { boot: 0, wall: 0 }
  const clocks: Clocks = {
    boot: () => systemClocks.boot() + ahead.boot,
    wall: () => systemClocks.wall() + ahead.wall,
    monotonic: systemClocks.monotonic,
  }
  const store = memoryStore()
  agent = new Agent({
    data,
    bootstrap: {
      agentId: 'agent1',
      url: control.url,
      token: control.token,
      checkin: 900_000,
      checkpoints: { directory: data },
    },
    bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    clocks,
    confinement: await probeConfinement(),
    keeper: installKeeper(data),
    sdk: null,
    log: pino({ enabled: false }),
    version: 'test',
    store: async () => store,
    notices: metadataFile(data),
    rereadBootstrap: () => null,
    done: () => {},
  })
  await agent.start()
})
afterEach(async () => {
  control.order('job1.1', 99, { do: 'end' })
  await until(() => control.report('job1.1') === null)
  agent.close()
  await control.cut()
  rmSync(data, { recursive: true, force: true })
})

const written = (): string => readFileSync(join(data, 'attempts', 'job1.1', 'log'), 'utf8')

const ticking = async (leaseLength: number): Promise<void> => {
  control.leaseLength = leaseLength
  const start = jobStart(['sh', '-c', 'while :; do echo x; sleep 0.02; done'], {
    settings: settings({ leaseLength, leaseRenew: 600_000 }),
  })
  control.order('job1.1', 1, run(start))
  await control.reported('job1.1', ({ phase }) => phase === 'running')
  await until(() => control.log('job1.1').length > 0)
  control.leaseLength = null
}

test.each([
  ['it slept (boot time ran ahead)', { boot: 5000, wall: 5000 }],
  ['its wall clock ran ahead', { boot: 0, wall: 5000 }],
])('J-LEASE-2 %s: the job is frozen first, and goes on with a lease asked for after that', async (_, jump) => {
  await ticking(3_600_000)
  const asked = control.renewals.length
  ahead = jump
  agent.look()
  // before anything is answered it stands still
  await until(() => control.renewals.length > asked)
  await pause(50)
  const stood = written().length
  await pause(250)
  expect(written().length).toBe(stood)
  const { told } = await control.reported('job1.1', (report) => report.told.length > 0)
  expect(told[0]?.code).toBe('agent.slept')
  control.leaseLength = 3_600_000
  await until(() => written().length > stood, 12_000)
})

test('J-LEASE-2 it slept past its hard stop: the job never runs again', async () => {
  await ticking(60_000)
  ahead = { boot: 70_000, wall: 70_000 }
  agent.look()
  await pause(50)
  const stood = written().length
  const { exit } = await control.reported('job1.1', (report) => report.exit)
  expect(exit?.how).toBe('deadline')
  expect(written().length).toBe(stood)
})

test('a clock that slews a little disturbs nobody', async () => {
  await ticking(3_600_000)
  for (let round = 0; round < 5; round++) {
    ahead = { boot: ahead.boot + 500, wall: ahead.wall - 700 }
    agent.look()
  }
  const before = written().length
  await pause(200)
  expect(written().length).toBeGreaterThan(before)
  expect(control.report('job1.1')?.told).toEqual([])
})
