/**
 * What travels between people's programs and the control plane, checked at the control plane's edge. Instants are ms since
 * 1970 UTC, durations ms, sizes bytes, money decimal strings with a currency. Every string and list has a bound.
 */
import { z } from 'zod'

/** Values as they are sent: nobody changes them on the way. */
export type Wire<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends readonly (infer E)[]
    ? readonly Wire<E>[]
    : { readonly [K in keyof T]: Wire<T[K]> }
/** What the control plane gets: checked, with defaults filled in. */
type Got<S extends z.ZodType> = Wire<z.output<S>>
/** What a caller writes: defaults may be left out. */
export type Sent<S extends z.ZodType> = Wire<z.input<S>>

const instant = z.int().min(0).describe('ms since 1970 UTC')
const duration = z.int().min(0).describe('ms')
const bytes = z
  .int()
  .min(0)
  .max(2 ** 53 - 1)
const line = (max: number) => z.string().min(1).max(max)
const sentence = z.string().max(4000)
/** Numbers and words behind a reason or an event, in the units that their names say. */
const facts = z.record(z.string().max(100), z.unknown())

export const limits = {
  /** of a JSON request body, bytes */
  body: 1024 * 1024,
  /** of the archive of a working directory, bytes */
  workdir: 1024 ** 3,
  /** of an attempt's outputs, bytes */
  outputs: 64 * 1024 ** 3,
} as const

// ---------------------------------------------------------------- small things

export const jobName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/, 'small letters, digits, dots and dashes, 1 to 63 of them')
  .describe("a job's name: what people type")
const jobRef = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "a job's name, its beginning or its id")
  .describe("a job's name, a beginning of it that no other has, or its id")
const sha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'a sha256: 64 small hexadecimal digits')
  .describe('sha256, hex')
const pattern = line(300)
  .regex(/^[^\s\p{Cc}]+$/u, 'a pattern without spaces')
  .describe('narrows placement (`aws/us-east-1`), or spells out one offer')

export const moneyView = z
  .strictObject({
    amount: z.string().regex(/^-?\d{1,9}(\.\d{1,6})?$/, 'an amount with at most six decimal places, like 12.50'),
    currency: z.string().regex(/^[A-Z]{3}$/, 'a currency of three capital letters, like USD'),
  })
  .meta({ id: 'Money', description: 'An amount as a decimal string, with its currency.' })
export type MoneyView = Got<typeof moneyView>

export const whyView = z
  .strictObject({ code: line(100), sentence, facts })
  .meta({ id: 'Why', description: 'A reason: its code, its sentence, and the numbers behind it.' })
export type WhyView = Got<typeof whyView>

const gpus = z
  .strictObject({ model: line(60), count: z.int().min(1).max(64) })
  .meta({ id: 'Gpus', description: 'GPUs of one model.' })

export const exitView = z
  .strictObject({ code: z.int().nullable(), signal: z.string().max(20).nullable(), at: instant })
  .meta({ id: 'Exit', description: 'How a process ended: with a code, or by a signal.' })
export type ExitView = Got<typeof exitView>

export const refusedValue = z
  .strictObject({ path: z.string().max(8000), type: z.string().max(2000), reason: sentence, advice: sentence })
  .meta({ id: 'RefusedValue', description: 'A value that a checkpoint cannot carry: where, what, why, what to do.' })
export type RefusedValueView = Got<typeof refusedValue>

export const errorView = z
  .strictObject({
    error: z.strictObject({ code: line(100), message: sentence, advice: sentence, facts }),
  })
  .meta({ id: 'Error', description: 'The one shape of every error: what happened, what to do, and the facts.' })

// ---------------------------------------------------------------- requests

const needs = z
  .strictObject({
    cpus: z.number().gt(0).max(4096).optional().describe('CPU cores'),
    memoryBytes: bytes.min(1).optional(),
    diskBytes: bytes.min(1).optional(),
    gpus: gpus.optional(),
    image: line(500).optional().describe('a container image'),
  })
  .meta({ id: 'Needs', description: 'What a job needs of a machine; what is left out is not asked for.' })
export type NeedsRequest = Got<typeof needs>

/** Settings as they were typed: `{"ttl": "72h"}`. The control plane checks keys, units and ranges. */
const settings = z
  .record(line(60), z.string().max(200))
  .refine((record) => Object.keys(record).length <= 100, 'at most 100 settings')
  .describe('settings by key, as typed on flags: {"ttl": "72h"}')

/** As much as Linux takes in one argument; a NUL would end it early. */
const argument = z
  .string()
  .max(131_071)
  .refine((text) => !text.includes('\0'), 'text without NUL')

const insidePath = line(1000)
  .regex(/^(?!\/)(?!.*(^|\/)\.\.(\/|$))\P{Cc}+$/u, 'a path inside the working directory')
  .describe('a path inside the working directory')

export const jobRequest = z
  .strictObject({
    name: jobName.optional(),
    command: z
      .array(argument)
      .min(1)
      .max(4096)
      .refine(([program]) => program !== '', 'the program to run comes first')
      .describe('the program and its arguments: a list, never a string for a shell'),
    env: z
      .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,255}$/, 'letters, digits and _'), argument)
      .refine((record) => Object.keys(record).length <= 1000, 'at most 1000 variables')
      .default({}),
    workdir: sha256
      .nullable()
      .default(null)
      .describe('the archive sent before by putWorkdir; null: an empty directory'),
    outputs: z.array(insidePath).max(1000).default([]).describe('what the job writes and wants to keep'),
    needs: needs.default({}),
    on: pattern.optional(),
    checkpoint: z.enum(['auto', 'sdk', 'none']).default('auto'),
    settings: settings.default({}),
  })
  .meta({ id: 'JobRequest', description: 'A job to run.' })
export type JobRequest = Got<typeof jobRequest>

export const resumeRequest = z
  .strictObject({
    on: pattern.optional().describe('replaces the pattern or the pin'),
    cpus: needs.shape.cpus,
    memoryBytes: needs.shape.memoryBytes,
    gpus: gpus.optional(),
    ttl: line(30).optional().describe('as typed: `24h`, `off`'),
    budget: line(40).optional().describe('as typed: `12.50 USD`'),
    wait: duration
      .max(365 * 86_400_000)
      .optional()
      .describe('queue this long for an offer, ms'),
    same: z.boolean().default(false).describe('insist on the same needs after running out of memory'),
    settings: settings.default({}),
  })
  .meta({ id: 'ResumeRequest', description: 'How a suspended job goes on; what is left out stays as it was.' })
export type ResumeRequest = Got<typeof resumeRequest>

export const moveRequest = z
  .strictObject({ on: pattern.optional().describe('where to; left out: the cheapest that fits') })
  .meta({ id: 'MoveRequest' })
export type MoveRequest = Got<typeof moveRequest>

export const stopRequest = z
  .strictObject({ now: z.boolean().default(false).describe('without trying a checkpoint first') })
  .meta({ id: 'StopRequest' })
export type StopRequest = Got<typeof stopRequest>

export const emptyRequest = z.strictObject({}).describe('an empty object')

// ---------------------------------------------------------------- params and queries

export const refParams = z.strictObject({ ref: jobRef })
export const shaParams = z.strictObject({ sha256 })
export const attemptParams = z.strictObject({
  id: z.string().regex(/^[A-Za-z0-9_-]{1,100}\.\d{1,10}$/, "an attempt's id: JOBID.TOKEN"),
})

/** Queries arrive as text; what a client writes is text, number or boolean. */
const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')])
const whole = (min: number, max: number) => z.coerce.number<string | number>().int().min(min).max(max)

export const jobsQuery = z.strictObject({
  all: flag.default(false).describe('the ended ones too'),
  limit: whole(1, 1000).default(200),
})
export type JobsQuery = Got<typeof jobsQuery>

/** Where a log is followed from: the attempt's token and the byte offset in its log. */
const logPosition = z.string().regex(/^\d{1,9}:\d{1,16}$/, 'a position in a log: TOKEN:OFFSET')
export const logQuery = z.strictObject({
  from: logPosition.optional().describe('TOKEN:OFFSET; left out: the beginning'),
})

export const eventsQuery = z.strictObject({
  after: whole(0, Number.MAX_SAFE_INTEGER).optional().describe('only events with a higher seq'),
  limit: whole(1, 10_000).default(1000).describe('of a JSON answer; a stream has no end'),
})

export const outputsQuery = z.strictObject({
  path: insidePath.optional().describe('one declared output, or a file inside it; left out: all'),
})

export const offersQuery = z.strictObject({
  on: pattern.optional(),
  cpus: z.coerce.number<string | number>().gt(0).max(4096).optional(),
  memoryBytes: whole(1, Number.MAX_SAFE_INTEGER).optional(),
  diskBytes: whole(1, Number.MAX_SAFE_INTEGER).optional(),
  gpuModel: line(60).optional(),
  gpuCount: whole(1, 64).optional(),
  image: line(500).optional(),
})
export type OffersQuery = Got<typeof offersQuery>

// ---------------------------------------------------------------- jobs

export const jobStates = [
  'queued',
  'starting',
  'running',
  'moving',
  'suspending',
  'suspended',
  'resuming',
  'succeeded',
  'failed',
  'stopped',
] as const

export const jobView = z
  .strictObject({
    id: line(60),
    name: line(63),
    state: z.enum(jobStates),
    stateSince: instant,
    why: whyView.nullable().describe('why it is in this state, where there is more to say'),
    command: z.array(z.string()),
    createdAt: instant,
    attempt: z.int().min(1).nullable().describe("the current attempt's number, or the last one's; null: none yet"),
    offer: z.string().max(300).nullable().describe('where it runs, or ran last'),
    market: z.enum(['spot', 'on-demand', 'owned']).nullable(),
    on: z.string().max(300).nullable().describe('the pattern that binds its placement'),
    pinned: z.boolean(),
    narrowed: z.boolean(),
    progress: z
      .strictObject({ done: z.number().nullable(), total: z.number().nullable(), turns: z.int().min(0) })
      .nullable()
      .describe('what the job reported; turns: how often it passed a safe point'),
    ran: duration.describe('machine time over all attempts, ms'),
    spent: moneyView,
    checkpoint: z
      .strictObject({
        slot: z.int().min(0),
        savedAt: instant,
        bytes,
        verified: z.boolean(),
        method: z.enum(['sdk', 'files', 'process']).nullable(),
      })
      .nullable()
      .describe('the newest committed one'),
    unreachableSince: instant.nullable(),
    exit: exitView.nullable(),
    resumableUntil: instant.nullable().describe('until when an ended or suspended job can be resumed'),
    expiresAt: instant.nullable().describe('when the checkpoint of a suspended job expires'),
    wish: z
      .strictObject({
        to: z.enum(['suspend', 'move', 'stop']),
        by: z.string().max(200),
        at: instant,
        on: z.string().max(300).nullable(),
      })
      .nullable()
      .describe('what a person asked for and what is not carried out yet'),
    move: z
      .strictObject({
        id: line(80),
        kind: z.enum(['move', 'suspension']),
        step: z.string().max(40),
        to: z.string().max(300).nullable(),
      })
      .nullable()
      .describe('the move or suspension under way'),
    refused: z.array(refusedValue).describe('the values that the last try to carry its state named'),
    warnings: z.array(whyView),
  })
  .meta({ id: 'Job', description: 'A job as it stands.' })
export type JobView = Got<typeof jobView>

export const jobsView = z
  .strictObject({ jobs: z.array(jobView), more: z.boolean().describe('there are older ones than the limit shows') })
  .meta({ id: 'Jobs', description: 'Newest first.' })
export type JobsView = Got<typeof jobsView>

export const askedView = z
  .strictObject({
    job: jobView,
    after: z.int().min(0).describe("follow the job's events after this seq for the outcome"),
  })
  .meta({ id: 'Asked', description: 'What was asked is recorded; its outcome follows as events of the job.' })
export type AskedView = Got<typeof askedView>

export const eventView = z
  .strictObject({
    seq: z.int().min(0),
    at: instant,
    subject: z.string().max(200).describe("a job's id, a connection's name, or `portal`"),
    kind: line(60).describe('for jobs: see jobEventKinds'),
    by: z.string().max(200),
    why: whyView.nullable(),
    facts,
  })
  .meta({ id: 'Event', description: 'Something that happened.' })
export type EventView = Got<typeof eventView>

/** The kinds of a job's events. `move.aborted` and `asked` carry `facts.refused` where values were named. */
export const jobEventKinds = [
  'created',
  'queued',
  'starting',
  'started',
  'unreachable',
  'reachable',
  'notice',
  'asked',
  'move.begun',
  'move.step',
  'move.committed',
  'move.aborted',
  'suspended',
  'resuming',
  'resumed',
  'warned',
  'ended',
] as const
export type JobEventKind = (typeof jobEventKinds)[number]

export const eventsView = z
  .strictObject({ events: z.array(eventView), last: z.int().min(0).describe('ask on with after = last') })
  .meta({ id: 'Events' })
export type EventsView = Got<typeof eventsView>

export const decisionView = z
  .strictObject({
    id: line(100),
    policy: line(60),
    outcome: z.enum(['rested', 'acted', 'declined', 'refused', 'warned', 'dropped', 'outranked']),
    why: whyView,
    firstAt: instant,
    lastAt: instant,
    count: z.int().min(1).describe('equal decisions in a row'),
    lookAgainAt: instant.nullable(),
  })
  .meta({ id: 'Decision', description: 'What a policy concluded, with its numbers.' })
export type DecisionView = Got<typeof decisionView>

export const explainView = z
  .strictObject({
    job: line(60),
    name: line(63),
    state: z.enum(jobStates),
    sentence: sentence.describe('why it is where it is, in one sentence'),
    why: whyView.nullable(),
    decisions: z.array(decisionView).describe('newest first'),
    events: z.array(eventView).describe('oldest first'),
    next: z
      .strictObject({ at: instant, policies: z.array(line(60)) })
      .nullable()
      .describe('what is looked at next'),
  })
  .meta({ id: 'Explanation' })
export type ExplainView = Got<typeof explainView>

export const checkpointsView = z
  .strictObject({
    job: line(60),
    method: z
      .enum(['sdk', 'files', 'process', 'none'])
      .nullable()
      .describe('how its state is carried; null: not known yet'),
    checkpoints: z
      .array(
        z.strictObject({
          slot: z.int().min(0),
          attempt: z.int().min(1),
          savedAt: instant,
          bytes,
          storedBytes: bytes,
          verifiedAt: instant.nullable(),
          base: z.boolean().describe('the one that a resume goes on from'),
          expiresAt: instant.nullable(),
        }),
      )
      .describe('newest first'),
    refused: z.array(refusedValue).describe('what a checkpoint now would be refused for, as last seen'),
    probedAt: instant.nullable(),
  })
  .meta({ id: 'Checkpoints' })
export type CheckpointsView = Got<typeof checkpointsView>

// ---------------------------------------------------------------- events of a log's stream

export const logEvent = z
  .union([
    z.strictObject({ text: z.string() }),
    z.strictObject({ base64: z.string().describe('bytes that are not whole UTF-8') }),
  ])
  .meta({ id: 'LogBytes', description: 'Bytes of a log; the event id is the position behind them, TOKEN:OFFSET.' })
export const logEnd = z
  .strictObject({
    state: z.enum(jobStates),
    exit: exitView.nullable(),
    why: whyView.nullable(),
    resumableUntil: instant.nullable(),
  })
  .meta({ id: 'LogEnd', description: 'The job ended or is suspended, and all of its log was sent.' })
export type LogEnd = Got<typeof logEnd>

// ---------------------------------------------------------------- places, and the control plane itself

export const offerView = z
  .strictObject({
    id: line(300).describe('the spelling that pins a job'),
    connection: line(100),
    provider: line(100),
    region: z.string().max(100),
    zone: z.string().max(100),
    type: z.string().max(100),
    market: z.enum(['spot', 'on-demand', 'owned']),
    price: moneyView.describe('an hour'),
    notice: duration.nullable().describe('null: none'),
    lifetime: duration.nullable().describe('null: not limited'),
    cpus: z.number(),
    memoryBytes: bytes,
    gpus: gpus.nullable(),
    fits: z.boolean().describe('what was asked for'),
    leftOut: whyView.nullable().describe('why it is not taken though it fits: no capacity, reclaimed lately'),
  })
  .meta({ id: 'Offer', description: 'Where a job could run now.' })
export type OfferView = Got<typeof offerView>

export const offersView = z
  .strictObject({
    at: instant,
    offers: z.array(offerView).describe('cheapest first'),
    failed: z.array(z.strictObject({ connection: line(100), problem: sentence })).describe('who could not be asked'),
  })
  .meta({ id: 'Offers' })
export type OffersView = Got<typeof offersView>

export const connectionsView = z
  .strictObject({
    connections: z.array(
      z.strictObject({
        id: line(100),
        provider: line(100),
        committed: moneyView.describe('spent and set aside together'),
        cap: moneyView.nullable(),
        machines: z.int().min(0).describe('alive now'),
        problem: sentence.nullable().describe('why it cannot be used now'),
      }),
    ),
  })
  .meta({ id: 'Connections' })
export type ConnectionsView = Got<typeof connectionsView>

export const doctorView = z
  .strictObject({
    checks: z.array(
      z.strictObject({
        name: line(100),
        is: z.enum(['good', 'warning', 'broken']),
        sentence,
        advice: sentence.nullable(),
        facts,
      }),
    ),
  })
  .meta({ id: 'Doctor', description: 'What the control plane knows of itself.' })
export type DoctorView = Got<typeof doctorView>

export const healthView = z
  .strictObject({
    ok: z.literal(true),
    version: line(60),
    installation: line(60),
    pid: z.int().min(1),
    startedAt: instant,
  })
  .meta({ id: 'Health' })
export type HealthView = Got<typeof healthView>

export const shutdownView = z
  .strictObject({
    jobs: z.array(z.strictObject({ name: line(63), hardStopAt: instant.nullable() })),
    sentence: sentence.describe('what becomes of the jobs that run'),
  })
  .meta({ id: 'Shutdown' })
export type ShutdownView = Got<typeof shutdownView>

export const storedView = z.strictObject({ sha256, bytes }).meta({ id: 'Stored', description: 'What was kept.' })
export const outputsStoredView = z.strictObject({ bytes }).meta({ id: 'OutputsStored' })
