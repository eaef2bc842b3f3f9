/** Jobs as they are shown: states, events, decisions, checkpoints, logs. */
import { z } from 'zod'
import {
  bytes,
  duration,
  exitView,
  facts,
  instant,
  line,
  moneyView,
  refusedValue,
  sentence,
  whyView,
  type Got,
} from './values.ts'

const jobStates = [
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

/** The kinds of a job's events. `move.aborted` and `asked` carry `facts.refused` where values were named. */
const jobEventKinds = [
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

export const eventView = z
  .strictObject({
    seq: z.int().min(0),
    at: instant,
    subject: z.string().max(200).describe("a job's id, a connection's name, or `portal`"),
    kind: line(60).describe(`of a job: ${jobEventKinds.join(', ')}`),
    by: z.string().max(200),
    why: whyView.nullable(),
    facts,
  })
  .meta({ id: 'Event', description: 'Something that happened.' })
export type EventView = Got<typeof eventView>

export const eventsView = z
  .strictObject({ events: z.array(eventView), last: z.int().min(0).describe('ask on with after = last') })
  .meta({ id: 'Events' })

const decisionView = z
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
