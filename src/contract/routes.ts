/** The one route table: what each address takes, gives and can answer instead. Server, OpenAPI and client all read it. */
import type { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import { paths, type Address, type RouteName } from './paths.ts'
import * as practice from './practice.ts'
import * as s from './schemas.ts'

interface Described {
  readonly says: string
  readonly params?: z.ZodType
  readonly query?: z.ZodType
  /** a JSON body */
  readonly body?: z.ZodType
  /** a body of bytes: how many at most, and what they are */
  readonly upload?: { readonly limitBytes: number; readonly type: string }
  /** a JSON answer */
  readonly response?: z.ZodType
  /** an answer of bytes: its content type */
  readonly bytes?: string
  /** the events of a stream, by name */
  readonly events?: Readonly<Record<string, z.ZodType>>
  /** what can come instead, besides what every route can answer */
  readonly errors: readonly ErrorCode[]
}

const job = { params: s.refParams } as const
const noJob = ['job_not_found', 'ambiguous_job'] as const
const played = { response: practice.practiceView } as const

const described = {
  health: { says: 'Whether the control plane serves, and which one.', response: s.healthView, errors: [] },
  openapi: { says: 'This description.', errors: [] },

  createJob: {
    says: 'Runs a job.',
    body: s.jobRequest,
    response: s.jobView,
    errors: [
      'name_taken',
      'workdir_not_found',
      'unknown_setting',
      'invalid_setting',
      'unknown_pattern',
      'ambiguous_pattern',
    ],
  },
  jobs: { says: 'The jobs, newest first.', query: s.jobsQuery, response: s.jobsView, errors: [] },
  job: { says: 'One job.', ...job, response: s.jobView, errors: noJob },
  explain: {
    says: 'Why it is where it is: the sentence, the decisions, the events.',
    ...job,
    response: s.explainView,
    errors: noJob,
  },
  checkpoints: {
    says: 'Its checkpoints, and what one taken now would be refused for.',
    ...job,
    response: s.checkpointsView,
    errors: noJob,
  },
  suspend: {
    says: 'Asks that its state be saved and its machine be left. A value that cannot be carried refuses it.',
    ...job,
    body: s.emptyRequest,
    response: s.askedView,
    errors: [...noJob, 'job_ended', 'wrong_state'],
  },
  resume: {
    says: 'Asks that it go on from its newest checkpoint.',
    ...job,
    body: s.resumeRequest,
    response: s.askedView,
    errors: [
      ...noJob,
      'wrong_state',
      'resume_lost',
      'nothing_to_resume',
      'no_offer_fits',
      'unknown_setting',
      'invalid_setting',
      'unknown_pattern',
      'ambiguous_pattern',
    ],
  },
  move: {
    says: 'Asks that it be moved, with its state, to another offer. A value that cannot be carried refuses it.',
    ...job,
    body: s.moveRequest,
    response: s.askedView,
    errors: [
      ...noJob,
      'job_ended',
      'wrong_state',
      'no_better_place',
      'no_offer_fits',
      'unknown_pattern',
      'ambiguous_pattern',
    ],
  },
  stop: {
    says: 'Asks that it end: a checkpoint where one can be had, then SIGTERM, then the whole process tree.',
    ...job,
    body: s.stopRequest,
    response: s.askedView,
    errors: [...noJob, 'job_ended'],
  },

  readLog: {
    says: 'The log as it is now.',
    ...job,
    query: s.logQuery,
    bytes: 'application/octet-stream',
    errors: noJob,
  },
  followLog: {
    says: 'The log as it grows. Ends with `end` when the job has ended or is suspended and all was sent.',
    ...job,
    query: s.logQuery,
    events: { log: s.logEvent, end: s.logEnd },
    errors: [...noJob, 'too_many_streams'],
  },
  readOutputs: {
    says: 'A tar archive of its declared outputs, of one of them, or of a file inside one.',
    ...job,
    query: s.outputsQuery,
    bytes: 'application/x-tar',
    errors: [...noJob, 'output_not_found'],
  },
  jobEvents: {
    says: 'What happened to it so far.',
    ...job,
    query: s.eventsQuery,
    response: s.eventsView,
    errors: noJob,
  },
  followJobEvents: {
    says: 'What happened to it and what happens from now on. Begins at its first event where neither `after` nor Last-Event-ID is given.',
    ...job,
    query: s.eventsQuery,
    events: { change: s.eventView },
    errors: [...noJob, 'too_many_streams'],
  },
  events: { says: 'What happened so far.', query: s.eventsQuery, response: s.eventsView, errors: [] },
  followEvents: {
    says: 'What happens. Begins now where neither `after` nor Last-Event-ID is given.',
    query: s.eventsQuery,
    events: { change: s.eventView },
    errors: ['too_many_streams'],
  },

  hasWorkdir: {
    says: 'Whether this archive was sent before.',
    params: s.shaParams,
    errors: ['workdir_not_found'],
  },
  putWorkdir: {
    says: 'Sends the archive (tar, or tar.gz) of a working directory; it is kept once its sha256 was verified.',
    params: s.shaParams,
    upload: { limitBytes: s.limits.workdir, type: 'application/octet-stream' },
    response: s.storedView,
    errors: ['hash_mismatch', 'upload_incomplete', 'disk_full'],
  },

  offers: {
    says: 'Where a job with these needs could run now, cheapest first.',
    query: s.offersQuery,
    response: s.offersView,
    errors: ['unknown_pattern', 'ambiguous_pattern'],
  },
  connections: { says: 'The accounts and own machines that are connected.', response: s.connectionsView, errors: [] },
  doctor: { says: 'What the control plane knows of itself.', response: s.doctorView, errors: [] },
  shutdown: {
    says: 'Stops the control plane; says what becomes of the jobs that run.',
    body: s.emptyRequest,
    response: s.shutdownView,
    errors: [],
  },

  practice: { says: 'The practice cloud.', response: practice.practiceView, errors: ['practice_absent'] },
  practiceNotice: {
    says: 'Tells a machine of the practice cloud that it will be taken.',
    body: practice.noticeRequest,
    ...played,
    errors: ['practice_absent', 'machine_not_found'],
  },
  practiceReclaim: {
    says: 'Takes a machine of the practice cloud at once.',
    body: practice.reclaimRequest,
    ...played,
    errors: ['practice_absent', 'machine_not_found'],
  },
  practiceWithdraw: {
    says: 'Takes back a notice.',
    body: practice.withdrawRequest,
    ...played,
    errors: ['practice_absent', 'machine_not_found'],
  },
  practicePrice: {
    says: 'Sets the price of offers of the practice cloud.',
    body: practice.priceRequest,
    ...played,
    errors: ['practice_absent', 'offer_not_found'],
  },
  practiceCapacity: {
    says: 'Sets how many machines the practice cloud has of some offers.',
    body: practice.capacityRequest,
    ...played,
    errors: ['practice_absent', 'offer_not_found'],
  },
  practiceQuota: {
    says: 'Sets how many CPUs the practice cloud lets this account have in a region.',
    body: practice.quotaRequest,
    ...played,
    errors: ['practice_absent', 'offer_not_found'],
  },
  practiceLifetime: {
    says: 'Sets after how long the practice cloud ends machines of some offers.',
    body: practice.lifetimeRequest,
    ...played,
    errors: ['practice_absent', 'offer_not_found'],
  },
  practiceNoticeLength: {
    says: 'Sets how long the notice of some offers of the practice cloud is.',
    body: practice.noticeLengthRequest,
    ...played,
    errors: ['practice_absent', 'offer_not_found'],
  },
  practiceReset: {
    says: 'Sets the practice cloud back.',
    body: practice.resetRequest,
    ...played,
    errors: ['practice_absent'],
  },

  agentWorkdir: {
    says: 'The archive of the working directory of a job that this agent serves.',
    params: s.shaParams,
    bytes: 'application/octet-stream',
    errors: ['not_yours', 'workdir_not_found'],
  },
  agentOutputs: {
    says: "Sends the tar archive of an attempt's declared outputs; it replaces the one before once it is whole.",
    params: s.attemptParams,
    query: s.outputsSentQuery,
    upload: { limitBytes: s.limits.outputs, type: 'application/x-tar' },
    response: s.outputsStoredView,
    errors: ['not_yours', 'upload_incomplete', 'disk_full'],
  },
} as const satisfies { readonly [N in RouteName]: Described }

type Table = { readonly [N in RouteName]: { readonly name: N } & (typeof paths)[N] & (typeof described)[N] }

/** Every route, by name. */
export const routes: Table = Object.fromEntries(
  (Object.keys(paths) as RouteName[]).map((name) => [name, { name, ...paths[name], ...described[name] }]),
) as unknown as Table

/** A route without the particulars of its types, for those who go over all of them. */
export type AnyRoute = { readonly name: RouteName } & Address & Described

/** What every route that asks for a token can answer besides its own errors. */
export const commonErrors = ['invalid_request', 'unauthorized', 'wrong_host', 'wrong_origin', 'internal'] as const
