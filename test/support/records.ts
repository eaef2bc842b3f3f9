import { builtIn } from '../../src/core/jobs/settings.ts'
import { money } from '../../src/core/money/index.ts'
import { reasons, why, type ReasonCode } from '../../src/core/reasons.ts'
import type { AttemptRecord, JobRecord, MoveRecord, Offer } from '../../src/core/jobs/model.ts'
import type { EventRecord } from '../../src/core/decisions.ts'
import type { ConnectionRecord, Tables } from '../../src/store/port.ts'

type New<Row> = Omit<Row, 'version'>

/** Records as they are first written, valid in every field; what a test is about is given. */
export const anyReason = why(Object.keys(reasons)[0] as ReasonCode, { source: 'a test' })

const offer: Offer = {
  id: 'practice/north/a/small/spot',
  connection: 'practice',
  provider: 'practice',
  region: 'north',
  zone: 'a',
  type: 'small',
  market: 'spot',
  price: money(0.1),
  notice: 120_000,
  lifetime: null,
  cpus: 2,
  memoryBytes: 4 * 1024 ** 3,
  gpus: null,
}

export const job = (id: string, given: Partial<New<JobRecord>> = {}): New<JobRecord> => ({
  id,
  name: id,
  spec: {
    command: ['python3', 'train.py'],
    env: {},
    workdir: null,
    outputs: [],
    needs: { cpus: 1, memoryBytes: 1024 ** 3, diskBytes: 1024 ** 3, gpus: null, image: null },
    on: null,
    checkpoint: 'auto',
    settings: builtIn,
  },
  state: { is: 'queued', since: 0, why: anyReason },
  wish: null,
  lastToken: 0,
  current: null,
  base: null,
  lastSlot: 0,
  createdAt: 0,
  ttlFrom: 0,
  exit: null,
  abortedMove: null,
  move: null,
  passedOver: [],
  warnings: [],
  due: 0,
  ...given,
})

export const attempt = (jobId: string, token: number, given: Partial<New<AttemptRecord>> = {}): New<AttemptRecord> => ({
  id: `${jobId}.${token}`,
  jobId,
  token,
  state: 'intended',
  offer,
  needs: { cpus: 1, memoryBytes: 1024 ** 3, diskBytes: 1024 ** 3, gpus: null, image: null },
  machineId: null,
  agentId: 'agent',
  intendedAt: 0,
  startedAt: null,
  boundAt: null,
  from: null,
  ranUntil: null,
  ranFrom: null,
  endingAt: null,
  goneAt: null,
  lease: null,
  committed: money(1),
  spent: null,
  logLimit: null,
  exit: null,
  ...given,
})

export const suspension = (id: string, jobId: string, given: Partial<New<MoveRecord>> = {}): New<MoveRecord> => ({
  id,
  jobId,
  kind: 'suspension',
  by: { person: 'a test' },
  why: anyReason,
  on: null,
  source: 1,
  target: null,
  step: 'probe',
  slot: null,
  seal: null,
  outcome: null,
  abortWhy: null,
  refused: [],
  times: {},
  ...given,
})

export const decision = (
  id: string,
  subject: string,
  given: Partial<New<Tables['decisions']>> = {},
): New<Tables['decisions']> => ({
  id,
  subject,
  policy: 'idle',
  outcome: 'rested',
  why: anyReason,
  firstAt: 0,
  lastAt: 0,
  count: 1,
  lookAgainAt: null,
  ...given,
})

export const connection = (id: string, given: Partial<New<ConnectionRecord>> = {}): New<ConnectionRecord> => ({
  id,
  provider: 'practice',
  settings: {},
  currency: 'USD',
  committedMicros: 0,
  capMicros: null,
  ...given,
})

export const event = (subject: string, facts: EventRecord['facts'] = {}): Omit<EventRecord, 'seq'> => ({
  at: 0,
  subject,
  kind: 'happened',
  by: 'a test',
  why: null,
  facts,
})
