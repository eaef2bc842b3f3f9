import type { ToAgent, ToControl } from '../../contract/agent.ts'
import type { PracticeAct, PracticeView } from '../../contract/practice.ts'
import type {
  AskedView,
  CheckpointsView,
  ConnectionsView,
  DoctorView,
  EventView,
  ExplainView,
  HealthView,
  JobRequest,
  JobView,
  JobsQuery,
  JobsView,
  LogEnd,
  MoveRequest,
  OffersQuery,
  OffersView,
  ResumeRequest,
  ShutdownView,
  StopRequest,
} from '../../contract/schemas.ts'
import type { Asker } from '../../core/jobs/model.ts'

/**
 * What the control plane can be asked: the routes of the contract without HTTP. Requests arrive checked, with defaults
 * filled in. `ref` is a job's name, a beginning of it that no other has, or its id. Whatever goes wrong is a PortalError
 * of the catalogue (`portalError('job_not_found', …)`); anything else is answered as `internal` and logged.
 */
export interface ControlApi {
  health(): HealthView

  /** `request.workdir`, where there is one, has been sent: the server looked. */
  createJob(request: JobRequest, by: Asker): Promise<JobView>
  jobs(query: JobsQuery): Promise<JobsView>
  job(ref: string): Promise<JobView>
  explain(ref: string): Promise<ExplainView>
  checkpoints(ref: string): Promise<CheckpointsView>

  suspend(ref: string, by: Asker): Promise<AskedView>
  resume(ref: string, request: ResumeRequest, by: Asker): Promise<AskedView>
  move(ref: string, request: MoveRequest, by: Asker): Promise<AskedView>
  stop(ref: string, request: StopRequest, by: Asker): Promise<AskedView>

  /** The log as it is now, from a position on. Ends where the log ends at this moment. */
  readLog(ref: string, from: LogPosition | null): AsyncIterable<Uint8Array>
  /**
   * The log as it grows, from a position on; ends after one `end`. Pulled one piece at a time, so whoever reads slowly is
   * behind and nothing piles up: pieces are read from where the log is kept. Pieces of at most 64 KiB. Ends early when
   * `signal` is aborted.
   */
  followLog(ref: string, from: LogPosition | null, signal: AbortSignal): AsyncIterable<LogPiece>

  /** @param subject a job's id; null: everything */
  events(after: number, subject: string | null, limit: number): Promise<readonly EventView[]>
  /** @param after the seq behind which to begin; null: only what comes. Pulled, like the log. */
  followEvents(after: number | null, subject: string | null, signal: AbortSignal): AsyncIterable<EventView>

  /** What the job's outputs are now, and which paths were declared. */
  outputsOf(ref: string): Promise<OutputsNow>

  offers(query: OffersQuery): Promise<OffersView>
  connections(): Promise<ConnectionsView>
  doctor(): Promise<DoctorView>
  /** Answers first, stops after. */
  shutdown(by: Asker): Promise<ShutdownView>

  practice(): Promise<PracticeView>
  playPractice(act: PracticeAct, by: Asker): Promise<PracticeView>
}

/** Where in a job's log: the attempt's token, and the byte offset in the log of that attempt. */
export interface LogPosition {
  readonly token: number
  readonly offset: number
}

export type LogPiece =
  /** bytes of the attempt's log from `offset` on */
  | { readonly is: 'log'; readonly token: number; readonly offset: number; readonly bytes: Uint8Array }
  | ({ readonly is: 'end' } & LogEnd)

/** The agents' side of the control plane. An agent may read and write for its own attempts only. */
export interface AgentGateway {
  /** Which agent shows this token; null: none. */
  authenticate(token: string): Promise<string | null>
  /** An agent's socket is open; what it says was checked against the schema. A newer socket of the same agent closes the older. */
  connected(agentId: string, link: AgentLink): AgentSession
  /** Whether this agent serves a job with this working directory. */
  mayRead(agentId: string, workdir: string): Promise<boolean>
  /** Whether this agent may send outputs of this attempt: the attempt is its own and still accepted. */
  mayWrite(agentId: string, attemptId: string): Promise<boolean>
  /** The outputs of an attempt arrived whole and are kept. */
  stored(agentId: string, attemptId: string, bytes: number): Promise<void>
}

export interface OutputsNow {
  /** the name of the archive; null: there is none yet */
  readonly archive: string | null
  /** those that a checkpoint carries, to be kept under that name; null: an agent sent the archive */
  readonly bytes: AsyncIterable<Uint8Array> | null
  readonly declared: readonly string[]
}

export interface AgentLink {
  /** Sends, or drops when the socket is closed: every message is a level, and comes again after a connect. */
  send(message: ToAgent): void
  /** @param reason one sentence, for the agent's log */
  close(reason: string): void
}

export interface AgentSession {
  received(message: ToControl): void
  closed(): void
}
