/** What is asked: bodies, params and queries. */
import { z } from 'zod'
import { bytes, duration, gpus, jobName, jobRef, line, pattern, sha256, type Got } from './values.ts'

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

/** As much as Linux takes in one argument; a NUL would end it early, and half a character would arrive as another. */
const argument = z
  .string()
  .max(131_071)
  .refine((text) => !text.includes('\0'), 'text without NUL')
  .refine((text) => text.isWellFormed(), 'whole characters, not half of a surrogate pair')

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
const logPosition = z.string().regex(/^\d{1,9}:\d{1,15}$/, 'a position in a log: TOKEN:OFFSET')
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

/** What an agent sends while its job runs is not yet all of it. */
export const outputsSentQuery = z.strictObject({
  so_far: z.literal('true').optional().describe('as far as they are written: the job still runs'),
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
