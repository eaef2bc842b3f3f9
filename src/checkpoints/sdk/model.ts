import type { RefusedValue } from '../../core/jobs/model.ts'
import type { Duration, Instant } from '../../core/time/index.ts'
import type { Chain, Fenced, Json, Manifest, SavePlan, SaveWriter } from '../chain/model.ts'

/** The SDK of a job, as it presented itself. */
export interface SdkClient {
  readonly language: 'python' | 'node'
  readonly version: string
  readonly pid: number
  readonly environment: Json
  /** it came back after the connection was lost: the job is past its start */
  readonly again: boolean
}

export interface SdkOptions {
  /** where to listen; at most 107 bytes */
  readonly socketPath: string
  /** the shared file of 64 bytes */
  readonly flagPath: string
  readonly bitExact: boolean
  /** what this attempt is to begin from; null: from nothing. The manifest was read by `readManifest`. */
  readonly restore: (Chain & { readonly manifest: Manifest }) | null
  readonly limits?: Partial<SdkLimits>
}

/** How long a job's SDK may be silent where an answer is due, before the connection is given up. */
export interface SdkLimits {
  /** from the connection to `hello` */
  readonly hello: Duration
  /** for a probe's answer */
  readonly probe: Duration
  /** between two frames of a save */
  readonly frame: Duration
  /** from the last byte of a restore to the SDK's answer */
  readonly restored: Duration
}

export type RestoreOutcome =
  | { readonly is: 'nothing' }
  /** every hash was right, and the live values have the manifest's digest */
  | { readonly is: 'restored'; readonly ms: Duration }
  | { readonly is: 'refused'; readonly values: readonly RefusedValue[]; readonly why: string }
  /** the checkpoint is damaged, or came out with another digest */
  | { readonly is: 'damaged'; readonly why: string }
  | { readonly is: 'failed'; readonly why: string }

export type SafePointOutcome =
  | { readonly is: 'there'; readonly turn: number; readonly asks: 'checkpoint' | null }
  | { readonly is: 'late' | 'disconnected' | 'closed' }

export type ProbeOutcome =
  | { readonly is: 'probed'; readonly bytes: number; readonly objects: number; readonly ms: Duration }
  | { readonly is: 'refused'; readonly values: readonly RefusedValue[] }
  | { readonly is: 'failed'; readonly why: string }

export interface SaveOrder extends SavePlan {
  readonly savedAt: Instant
  readonly notes: Json
  /** adds what the agent carries itself (declared outputs) after the SDK's streams; what it cannot carry refuses the save */
  readonly more?: (writer: SaveWriter) => Promise<readonly RefusedValue[]>
}

export type SaveOutcome =
  | {
      readonly is: 'committed'
      readonly slot: number
      readonly bytes: number
      readonly storedBytes: number
      readonly manifest: Manifest
      readonly ms: Duration
    }
  | { readonly is: 'refused'; readonly values: readonly RefusedValue[] }
  | Fenced
  | { readonly is: 'failed'; readonly why: string }

export interface SdkEvents {
  /** a job's SDK is there (`again`: once more) */
  connected: [SdkClient]
  /** the connection is gone; `why` in one sentence */
  disconnected: [why: string]
  /** the restore has ended; comes once, after the first `connected` */
  restored: [RestoreOutcome]
  /**
   * the job is at a safe point and waits for `go`: after an `ask`, or since it asked for a checkpoint itself (`asks`), for
   * which somebody must listen
   */
  safePoint: [{ readonly turn: number; readonly asks: 'checkpoint' | null }]
}

/**
 * The agent's side of one attempt's conversation with the job (PROTOCOL.md). It knows neither orders nor moves: whoever
 * holds it decides. Nothing here throws for what a job does wrong; each outcome has its name.
 */
export interface SdkServer {
  readonly client: SdkClient | null
  /** where the job waits, if it is at a safe point */
  readonly at: { readonly turn: number; readonly asks: 'checkpoint' | null } | null
  on<E extends keyof SdkEvents>(event: E, listener: (...args: SdkEvents[E]) => void): void
  off<E extends keyof SdkEvents>(event: E, listener: (...args: SdkEvents[E]) => void): void
  /** What became of the restore, once that is known. */
  restored(): Promise<RestoreOutcome>
  /** Lets the attempt past `job.state()`, at once or as soon as it is there; the same again is nothing. */
  run(): void
  /** Ends the job with code 75, at once or at its next connection. */
  exit(why: string): void
  /** Sets the flag, so that the job comes to its next safe point. `go` clears it. */
  ask(): void
  /** Takes the question back; who waits is told `late`. Where the job waits at a safe point already, only `go` lets it on. */
  unask(): void
  /** Asks, and waits until the job is at a safe point. `late`: it did not come; the question is taken back. */
  safePoint(wait: Duration): Promise<SafePointOutcome>
  /** At a safe point: whether the state could be carried. Nothing is written. */
  probe(): Promise<ProbeOutcome>
  /** At a safe point: saves into `slot` and commits. The job waits on, until `go`. */
  save(order: SaveOrder): Promise<SaveOutcome>
  /** Clears the flag, then lets the job go on from its safe point. While a probe or a save is under way, it goes when that is over. */
  go(): void
  /** Safe points passed in this attempt, and what the job said of its progress. */
  progress(): { readonly turns: number; readonly done: number | null; readonly total: number | null }
  /**
   * Ends the conversation and removes the socket. The job is not touched, and the flag stays: a job that lives on has it
   * in memory, for the agent that comes next.
   */
  close(): Promise<void>
}
