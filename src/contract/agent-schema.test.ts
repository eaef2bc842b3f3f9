import { describe, expect, expectTypeOf, test } from 'vitest'
import { builtIn } from '../core/jobs/settings.ts'
import { checkBootstrap, checkToAgent, checkToControl, logPieceBytes } from './agent-schema.ts'
import type { AttemptOrder, AttemptReport, JobStart, ToAgent, ToControl } from './agent.ts'

const start: JobStart = {
  jobId: 'j1',
  jobName: 'nightly',
  command: ['true'],
  env: { A: 'b' },
  workdir: null,
  outputs: ['out/model.bin'],
  checkpoint: 'auto',
  settings: builtIn,
  offer: {
    id: 'this-machine',
    connection: 'this-machine',
    provider: 'this-machine',
    region: 'here',
    zone: 'here',
    type: 'host',
    market: 'owned',
    price: { micros: 0, currency: 'USD' },
    notice: null,
    lifetime: null,
    cpus: 2,
    memoryBytes: 1e9,
    gpus: null,
  },
  key: 'a2V5',
  lastSlot: 0,
}
const wants: AttemptOrder['want'][] = [
  { do: 'prepare', start, slot: 3 },
  { do: 'run', start, slot: null, aborted: null, lastSlot: 0 },
  { do: 'probe', move: 'm' },
  { do: 'hold', move: 'm', holdFor: 600_000, safePointWait: 600_000 },
  { do: 'promise', move: 'm' },
  { do: 'kill-held', move: 'm' },
  { do: 'stop', grace: 0, save: true, safePointWait: 1, lastSlot: 0 },
  { do: 'end' },
]
const report: AttemptReport = {
  attempt: 'j1.1',
  token: 1,
  version: 7,
  phase: 'held',
  method: 'sdk',
  sdk: { language: 'python', version: '0.1.0' },
  exit: { code: null, signal: 'SIGKILL', at: 1, how: 'killed-held', error: null },
  probe: { move: 'm', bytes: 1, refused: [{ path: 'a', type: 'b', reason: 'c', advice: 'd' }], why: null },
  held: { move: null, slot: 2, logOffset: 10, because: 'notice' },
  promised: null,
  voided: ['m0'],
  saveRefused: { move: null, refused: [], why: 'no room left', at: 1 },
  restoreFailed: { slot: 1, refused: [], why: 'damaged' },
  saved: { slot: 2, at: 1, bytes: 1, storedBytes: 1, took: 0.5 },
  progress: { turns: 4, done: 1.5, total: null },
  sample: { until: 1, cpu: 0.5, memoryBytes: 1, memoryPeakBytes: 2 },
  logBytes: 10,
  outputAt: null,
  undeclared: ['tmp/x'],
  told: [{ at: 1, code: 'agent.notice', facts: { left_ms: 30_000, source: 'metadata' } }],
}
const machine = { cpus: 2, memoryBytes: 1, notice: { seenAt: 1, endsAt: 2 }, confines: 'namespace' } as const

describe('to the agent', () => {
  test.each(wants)('takes the order $do as it is', (want) => {
    const message: ToAgent = { t: 'orders', attempts: [{ attempt: 'j1.1', token: 1, jobVersion: 1, want }] }
    expect(checkToAgent(JSON.parse(JSON.stringify(message)))).toEqual(message)
  })

  test('takes settings of a newer control plane', () => {
    const newer = { ...start, settings: { ...builtIn, checkpointEvery: 5 } }
    const want = { do: 'prepare', start: newer, slot: 1 }
    const message = { t: 'orders', attempts: [{ attempt: 'j1.1', token: 1, jobVersion: 1, want }] }
    expect(checkToAgent(message)).toEqual(message)
  })

  test.each([
    ['a folder outside', { t: 'superseded', attempt: '../../etc.1' }, /at attempt/],
    ['an unknown kind', { t: 'reboot' }, /at t/],
    ['one key too many', { t: 'log-ack', attempt: 'j.1', upTo: 1, more: 1 }, /more/],
    ['a negative offset', { t: 'log-ack', attempt: 'j.1', upTo: -1 }, /at upTo/],
    [
      'an output outside the working directory',
      {
        t: 'orders',
        attempts: [
          {
            attempt: 'j1.1',
            token: 1,
            jobVersion: 1,
            want: { do: 'prepare', slot: 1, start: { ...start, outputs: ['a/../../b'] } },
          },
        ],
      },
      /at attempts\[0\]\.want\.start\.outputs\[0\]/,
    ],
    ['nothing', null, /message/],
  ])('refuses %s by its place', (_, message, error) => {
    expect(() => checkToAgent(message)).toThrow(error)
  })
})

describe('to the control plane', () => {
  const messages: ToControl[] = [
    { t: 'hello', protocol: 1, agentId: 'a', bootId: 'b', version: '0.1.0' },
    { t: 'report', machine, attempts: [report] },
    { t: 'log', attempt: 'j1.1', offset: 5, data: Buffer.alloc(logPieceBytes, 'x').toString('base64') },
    { t: 'renew', attempt: 'j1.1', nonce: 'n' },
  ]
  test.each(messages)('takes $t as it is', (message) => {
    expect(checkToControl(JSON.parse(JSON.stringify(message)))).toEqual(message)
  })

  test('refuses a piece of a log that is too long', () => {
    const data = Buffer.alloc(logPieceBytes + 3, 'x').toString('base64')
    expect(() => checkToControl({ t: 'log', attempt: 'j1.1', offset: 5, data })).toThrow(/at data/)
  })
})

test('a bootstrap that names no control plane is refused by its place', () => {
  const bootstrap = {
    agentId: 'a',
    url: 'http://127.0.0.1:1',
    token: 't',
    checkin: 900_000,
    checkpoints: { directory: '/d' },
  }
  expect(checkBootstrap(bootstrap)).toEqual(bootstrap)
  expect(() => checkBootstrap({ ...bootstrap, url: 'file:///etc/passwd' })).toThrow(/at url/)
  expectTypeOf(checkBootstrap).returns.toHaveProperty('token')
})
