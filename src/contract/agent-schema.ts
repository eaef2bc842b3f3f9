/**
 * Checks what an agent and the control plane say to each other, on receipt, both ways. Strict and bounded: neither side
 * trusts the other's words more than it must. Only the settings may hold more than is known here, since a newer control
 * plane orders older agents.
 */
import { z } from 'zod'
import type { Bootstrap, ToAgent, ToControl } from './agent.ts'

const instant = z.number().min(0).max(8.64e15)
const duration = z.number().min(0).max(3.2e11)
const count = z
  .int()
  .min(0)
  .max(2 ** 53 - 1)
const measure = z.number().min(0)
const text = (max: number) => z.string().max(max)
const word = (max: number) => z.string().min(1).max(max)
const slot = z.int().min(0).max(1e9)
const token = z.int().min(0).max(1e9)

/** `JOBID.TOKEN`: it names a folder on the machine, so nothing else may be in it. */
const attemptId = z.string().regex(/^[A-Za-z0-9_-]{1,100}\.[0-9]{1,10}$/, 'JOBID.TOKEN')
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'a sha256, hex')
const base64 = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[A-Za-z0-9+/]*={0,2}$/, 'base64')
const moveId = word(200)

const refusedValue = z.strictObject({ path: text(8000), type: text(2000), reason: text(4000), advice: text(4000) })
const refusedValues = z.array(refusedValue).max(1001)

const gpus = z.strictObject({ model: word(60), count: z.int().min(1).max(64) }).nullable()
const offer = z.strictObject({
  id: word(400),
  connection: word(100),
  provider: word(100),
  region: text(100),
  zone: text(100),
  type: text(200),
  market: z.enum(['spot', 'on-demand', 'owned']),
  price: z.strictObject({ micros: z.number(), currency: word(10) }),
  notice: duration.nullable(),
  lifetime: duration.nullable(),
  cpus: measure,
  memoryBytes: measure,
  gpus,
})

const settings = z.looseObject({
  ttl: z.union([duration, z.literal('off')]),
  ttlKeep: duration,
  spot: z.boolean(),
  market: z.enum(['any', 'on-demand', 'spot']),
  leaseLength: z.union([duration.min(1), z.literal('detached')]),
  leaseRenew: duration.min(1),
  leaseMargin: duration,
  moveHold: duration,
  checkpointKeep: duration,
  safePointWait: duration,
  stopGrace: duration,
  startTimeout: duration,
  restoreTimeout: duration,
  checkin: duration,
  retryQueued: duration,
  retryRefused: duration,
  bitExact: z.boolean(),
})

const argument = z
  .string()
  .max(131_071)
  .refine((value) => !value.includes('\0'), 'text without NUL')
const insidePath = word(1000).regex(/^(?!\/)(?!.*(^|\/)\.\.(\/|$))\P{Cc}+$/u, 'a path inside the working directory')

const jobStart = z.strictObject({
  jobId: word(100),
  jobName: word(100),
  command: z.array(argument).min(1).max(4096),
  env: z.record(word(256).regex(/^[^=\0]+$/, 'a variable’s name'), argument),
  workdir: sha256.nullable(),
  outputs: z.array(insidePath).max(1000),
  checkpoint: z.enum(['auto', 'sdk', 'none']),
  settings,
  offer,
  key: base64(200),
  lastSlot: slot,
})

const want = z.discriminatedUnion('do', [
  z.strictObject({ do: z.literal('prepare'), start: jobStart, slot }),
  z.strictObject({
    do: z.literal('run'),
    start: jobStart,
    slot: slot.nullable(),
    aborted: moveId.nullable(),
    lastSlot: slot,
  }),
  z.strictObject({ do: z.literal('probe'), move: moveId }),
  z.strictObject({ do: z.literal('hold'), move: moveId, holdFor: duration, safePointWait: duration }),
  z.strictObject({ do: z.literal('promise'), move: moveId }),
  z.strictObject({ do: z.literal('kill-held'), move: moveId }),
  z.strictObject({
    do: z.literal('stop'),
    grace: duration,
    save: z.boolean(),
    safePointWait: duration,
    lastSlot: slot,
  }),
  z.strictObject({ do: z.literal('end') }),
])

const order = z.strictObject({ attempt: attemptId, token, jobVersion: count, want })

const toAgent = z.discriminatedUnion('t', [
  z.strictObject({ t: z.literal('orders'), attempts: z.array(order).max(10_000) }),
  z.strictObject({ t: z.literal('log-ack'), attempt: attemptId, upTo: count }),
  z.strictObject({ t: z.literal('granted'), attempt: attemptId, nonce: word(100), length: duration }),
  z.strictObject({ t: z.literal('superseded'), attempt: attemptId }),
])

const machineReport = z.strictObject({
  cpus: measure,
  memoryBytes: measure,
  notice: z.strictObject({ seenAt: instant, endsAt: instant }).nullable(),
  confines: z.enum(['namespace', 'cgroup', 'none']),
})

const exit = z.strictObject({
  code: z.int().min(-1).max(255).nullable(),
  signal: text(20).nullable(),
  at: instant,
  how: z.enum(['exited', 'killed-held', 'stopped', 'deadline', 'superseded', 'ended', 'could-not-start']),
  error: text(4000).nullable(),
})

const attemptReport = z.strictObject({
  attempt: attemptId,
  token,
  version: count,
  phase: z.enum(['new', 'preparing', 'prepared', 'running', 'saving', 'held', 'promised', 'stopping', 'ended']),
  method: z.enum(['sdk', 'none', 'unknown']),
  sdk: z.strictObject({ language: z.enum(['python', 'node']), version: text(100) }).nullable(),
  exit: exit.nullable(),
  probe: z.strictObject({ move: moveId, bytes: count, refused: refusedValues, why: text(4000).nullable() }).nullable(),
  held: z
    .strictObject({
      move: moveId.nullable(),
      slot,
      logOffset: count,
      because: z.enum(['order', 'notice', 'deadline']),
    })
    .nullable(),
  promised: moveId.nullable(),
  voided: z.array(moveId).max(1000),
  saveRefused: z
    .strictObject({ move: moveId.nullable(), refused: refusedValues, why: text(4000), at: instant })
    .nullable(),
  restoreFailed: z.strictObject({ slot, refused: refusedValues, why: text(4000) }).nullable(),
  saved: z.strictObject({ slot, at: instant, bytes: count, storedBytes: count, took: duration }).nullable(),
  progress: z.strictObject({ turns: count, done: z.number().nullable(), total: z.number().nullable() }),
  sample: z.strictObject({ until: instant, cpu: measure, memoryBytes: measure, memoryPeakBytes: measure }).nullable(),
  logBytes: count,
  outputAt: instant.nullable(),
  undeclared: z.array(text(4096)).max(20),
  told: z
    .array(
      z.strictObject({
        at: instant,
        code: word(100),
        facts: z.record(word(100), z.union([text(4000), z.number()])),
      }),
    )
    .max(1000),
})

/** Of a piece of a log, bytes before base64. */
export const logPieceBytes: number = 256 * 1024

const toControl = z.discriminatedUnion('t', [
  z.strictObject({
    t: z.literal('hello'),
    protocol: z.int().min(1).max(1000),
    agentId: word(200),
    bootId: word(100),
    version: text(100),
  }),
  z.strictObject({ t: z.literal('report'), machine: machineReport, attempts: z.array(attemptReport).max(10_000) }),
  z.strictObject({
    t: z.literal('log'),
    attempt: attemptId,
    offset: count,
    data: base64(Math.ceil(logPieceBytes / 3) * 4),
  }),
  z.strictObject({ t: z.literal('renew'), attempt: attemptId, nonce: word(100) }),
])

const bootstrap = z.looseObject({
  agentId: word(200),
  url: z.url({ protocol: /^https?$/ }),
  token: word(1000),
  checkin: duration.min(1),
  checkpoints: z.looseObject({ directory: word(4096) }),
})

/** The first thing that is wrong, with where it is: `attempts[2].want.move: expected a string`. */
const check = (schema: z.ZodType, value: unknown, what: string): unknown => {
  const checked = schema.safeParse(value)
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  const path = (issue?.path ?? [])
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index > 0 ? '.' : ''}${String(step)}`))
    .join('')
  throw new TypeError(`${what}${path === '' ? '' : `, at ${path}`}: ${issue?.message ?? 'not what was expected'}`)
}

/** What an agent received. @throws TypeError that names the place of the first thing that is wrong */
export const checkToAgent = (message: unknown): ToAgent =>
  check(toAgent, message, 'the control plane’s message') as ToAgent

/** What the control plane received. @throws TypeError that names the place of the first thing that is wrong */
export const checkToControl = (message: unknown): ToControl =>
  check(toControl, message, 'the agent’s message') as ToControl

/** What a machine was given to find home. @throws TypeError that names the place of the first thing that is wrong */
export const checkBootstrap = (value: unknown): Bootstrap => check(bootstrap, value, 'the bootstrap file') as Bootstrap
