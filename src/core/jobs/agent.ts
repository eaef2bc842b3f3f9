import type { Offer, RefusedValue } from './model.ts'
import type { JobSettings } from './settings.ts'
import type { Duration, Instant } from '../time/index.ts'

/**
 * What an agent is told about an attempt (a level: what it should be doing) and what it tells (all that it knows of it).
 * How both travel stands in `contract/agent.ts`.
 */

/** What a new machine's agent needs to find home. Written to a private file on the machine, never on a command line. */
export interface Bootstrap {
  readonly agentId: string
  /** where the control plane listens */
  readonly url: string
  /** the agent's own token: for this machine only */
  readonly token: string
  /** it ends itself when it has not checked in this long after boot */
  readonly checkin: Duration
  /** where its checkpoints go without the control plane */
  readonly checkpoints: { readonly directory: string }
}

export interface MachineReport {
  readonly cpus: number
  readonly memoryBytes: number
  /** the provider's word that the machine will be taken; on the agent's wall clock */
  readonly notice: { readonly seenAt: Instant; readonly endsAt: Instant } | null
  /** what this machine can promise: `namespace` (or `cgroup`) ends every process of a job for sure, `none` cannot */
  readonly confines: 'namespace' | 'cgroup' | 'none'
}

export interface JobStart {
  readonly jobId: string
  readonly jobName: string
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** sha256 of the archive to fetch from `/api/agent/workdirs/SHA256` and to unpack; null: an empty directory */
  readonly workdir: string | null
  readonly outputs: readonly string[]
  readonly checkpoint: 'auto' | 'sdk' | 'none'
  readonly settings: JobSettings
  readonly offer: Offer
  /** the job's own key, base64: its manifests are authenticated with it */
  readonly key: string
  /** the highest slot of the chain that is taken when this attempt begins */
  readonly lastSlot: number
}

/** What an attempt should be doing now. Every order is a level, not a command: the same one twice is the same. */
export interface AttemptOrder {
  readonly attempt: string
  readonly token: number
  readonly jobVersion: number
  readonly want: Want
}

export type Want =
  /** Start the process and restore `slot` into it; it blocks in `job.state()` until `run`. */
  | { readonly do: 'prepare'; readonly start: JobStart; readonly slot: number }
  /**
   * Run: start the process if there is none yet (a first attempt has nothing to restore), let it past `job.state()`, or
   * let it go on if it is held: `aborted` names the move whose end frees it, `lastSlot` the slot behind its seal.
   */
  | {
      readonly do: 'run'
      readonly start: JobStart
      readonly slot: number | null
      readonly aborted: string | null
      readonly lastSlot: number
    }
  /** Go on running, and say whether a checkpoint could carry the state. */
  | { readonly do: 'probe'; readonly move: string }
  /** At the next safe point: save into the slot after the own last one, then freeze. Until it promised, it may run on alone after `holdFor`. */
  | { readonly do: 'hold'; readonly move: string; readonly holdFor: Duration; readonly safePointWait: Duration }
  /** Answer durably that this move's outcome is waited for, however long. */
  | { readonly do: 'promise'; readonly move: string }
  /** End a held job without letting it run again. */
  | { readonly do: 'kill-held'; readonly move: string }
  /** Ask the job to end (SIGTERM), after `grace` end all its processes. `save`: first try a checkpoint, without waiting for more than `safePointWait`, behind `lastSlot`. */
  | {
      readonly do: 'stop'
      readonly grace: Duration
      readonly save: boolean
      readonly safePointWait: Duration
      readonly lastSlot: number
    }
  /** All its processes end now; its folder may go. */
  | { readonly do: 'end' }

export type AttemptPhase =
  | 'new'
  | 'preparing'
  | 'prepared'
  | 'running'
  | 'saving'
  | 'held'
  | 'promised'
  | 'stopping'
  | 'ended'

export interface AttemptReport {
  readonly attempt: string
  readonly token: number
  /** the highest job version whose order it has taken on */
  readonly version: number
  readonly phase: AttemptPhase
  /** how the job's way of carrying its state looks now */
  readonly method: 'sdk' | 'none' | 'unknown'
  readonly sdk: { readonly language: 'python' | 'node'; readonly version: string } | null
  readonly exit: AttemptExit | null
  /** the answer to `probe` of this move */
  readonly probe: {
    readonly move: string
    readonly bytes: number
    readonly refused: readonly RefusedValue[]
    readonly why: string | null
  } | null
  /** where it is held, once that is on the machine's disk; `move` null: by itself, on a notice or before its deadline */
  readonly held: {
    readonly move: string | null
    readonly slot: number
    readonly logOffset: number
    readonly because: 'order' | 'notice' | 'deadline'
  } | null
  readonly promised: string | null
  /** the moves that it has voided by running on alone */
  readonly voided: readonly string[]
  /** a save or hold that failed: the values, or why not (`refused` empty) */
  readonly saveRefused: {
    readonly move: string | null
    readonly refused: readonly RefusedValue[]
    readonly why: string
    readonly at: Instant
  } | null
  /** a restore that failed */
  readonly restoreFailed: {
    readonly slot: number
    readonly refused: readonly RefusedValue[]
    readonly why: string
  } | null
  /** its own newest committed checkpoint */
  readonly saved: {
    readonly slot: number
    readonly at: Instant
    readonly bytes: number
    readonly storedBytes: number
    readonly took: Duration
  } | null
  readonly progress: { readonly turns: number; readonly done: number | null; readonly total: number | null }
  readonly sample: {
    readonly until: Instant
    readonly cpu: number
    readonly memoryBytes: number
    readonly memoryPeakBytes: number
  } | null
  readonly logBytes: number
  /** when output was last written; null: never */
  readonly outputAt: Instant | null
  /** files of the working directory that changed and are not declared outputs, at most 20 */
  readonly undeclared: readonly string[]
  /** what it decided alone, in words for the explanation: a notice seen, a sleep noticed */
  readonly told: readonly {
    readonly at: Instant
    readonly code: string
    readonly facts: Readonly<Record<string, string | number>>
  }[]
}

export interface AttemptExit {
  readonly code: number | null
  readonly signal: string | null
  readonly at: Instant
  /** `exited` by itself; `killed-held` on order, without having run since it was held; the others ended it */
  readonly how: 'exited' | 'killed-held' | 'stopped' | 'deadline' | 'superseded' | 'ended' | 'could-not-start'
  /** for `could-not-start`: one sentence */
  readonly error: string | null
}
