/** Attempts as tests of the agent's decisions meet them. */
import type { JobStart, Want } from '../contract/agent.ts'
import { builtIn, type JobSettings } from '../core/jobs/settings.ts'
import { hour } from '../core/time/index.ts'
import type { AttemptSeen, AttemptState, Held, Now, Step } from './model.ts'
import { newAttempt, nextStep } from './step.ts'

export const now: Now = { boot: 1_000_000, wall: 1_700_000_000_000 }

export const start = (settings: Partial<JobSettings> = {}, change: Partial<JobStart> = {}): JobStart => ({
  jobId: 'j',
  jobName: 'nightly',
  command: ['train'],
  env: {},
  workdir: null,
  outputs: [],
  checkpoint: 'auto',
  settings: { ...builtIn, ...settings },
  offer: {
    id: 'o',
    connection: 'c',
    provider: 'p',
    region: 'r',
    zone: 'z',
    type: 't',
    market: 'spot',
    price: { micros: 1, currency: 'USD' },
    notice: null,
    lifetime: null,
    cpus: 1,
    memoryBytes: 1,
    gpus: null,
  },
  key: '',
  lastSlot: 0,
  ...change,
})

export const run = (change: Partial<Extract<Want, { do: 'run' }>> = {}): Want => ({
  do: 'run',
  start: start(),
  slot: null,
  aborted: null,
  lastSlot: 0,
  ...change,
})
export const hold = (move = 'm'): Want => ({ do: 'hold', move, holdFor: 600_000, safePointWait: 60_000 })

export const fresh = newAttempt({ attempt: 'j.1', token: 1, jobVersion: 1, want: run() }, 'boot')
/** A job that runs, its SDK there. */
export const running: AttemptState = {
  ...fresh,
  version: 1,
  want: run(),
  start: start(),
  startedAt: { boot: now.boot - 60_000, wall: now.wall - 60_000 },
  ran: true,
  sdk: { language: 'python', version: '1' },
}
export const held: Held = { move: 'm', slot: 1, logOffset: 0, because: 'order', until: now.boot + 600_000 }

export const seen: AttemptSeen = {
  lease: now.boot + hour,
  keeper: 'running',
  kept: { is: 'begun' },
  keptAt: null,
  workdir: 'ready',
  connected: true,
  restored: { is: 'nothing' },
  let: true,
  frozen: false,
  asks: false,
  suspect: false,
  notice: null,
  busy: null,
  retryAt: 0,
}
export const step = (state: Partial<AttemptState>, what: Partial<AttemptSeen> = {}): Step =>
  nextStep({ ...running, ...state }, { ...seen, ...what }, now)
