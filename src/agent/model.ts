import type { AttemptExit, AttemptReport, JobStart, Want } from '../contract/agent.ts'
import type { Duration, Instant } from '../core/time/index.ts'
import type { Kept } from './keeper/index.ts'

/**
 * What an agent remembers of one attempt, on the machine's disk, before anybody hears of it. Moments of boot time count only
 * under `bootId`: whatever ran before a restart of the machine runs no more.
 */
export interface AttemptState {
  readonly format: 1
  readonly attempt: string
  readonly token: number
  readonly bootId: string
  /** the highest job version whose order was taken on; lower ones are refused */
  readonly version: number
  /** the newest order */
  readonly want: Want
  /** from the first order that had it */
  readonly start: JobStart | null
  /** the slot that its process begins from; null: from nothing */
  readonly from: number | null
  /** when its process was to be started: written down before it is */
  readonly startedAt: { readonly boot: Duration; readonly wall: Instant } | null
  /** it may be past `job.state()`: written down before it is let past */
  readonly ran: boolean
  /** its SDK, once it was there */
  readonly sdk: AttemptReport['sdk']
  /** its own last slot: it writes only the one after */
  readonly lastSlot: number
  /** the manifest that its state goes on from */
  readonly parent: number | null
  /** a save under way; found at a start it may have gone through or not, the chain knows */
  readonly saving: { readonly slot: number; readonly since: Instant } | null
  readonly held: Held | null
  readonly promised: string | null
  readonly voided: readonly string[]
  /** how far a stop has come */
  readonly stop: { readonly saved: boolean; readonly askedAt: Duration | null } | null
  /** why its processes are being ended; null: they are not */
  readonly ending: Exclude<AttemptExit['how'], 'exited' | 'could-not-start'> | null
  readonly exit: AttemptExit | null
  /** its declared outputs have arrived, or need not */
  readonly delivered: boolean
  readonly probe: AttemptReport['probe']
  readonly saved: AttemptReport['saved']
  readonly saveRefused: AttemptReport['saveRefused']
  readonly restoreFailed: AttemptReport['restoreFailed']
  readonly undeclared: readonly string[]
  readonly told: AttemptReport['told']
}

export interface Held {
  /** null: by itself */
  readonly move: string | null
  readonly slot: number
  readonly logOffset: number
  readonly because: 'order' | 'notice' | 'deadline'
  /** boot time at which it may run on alone, unless it has promised; null: not before it is told */
  readonly until: Duration | null
}

/** What the agent sees of an attempt now. */
export interface AttemptSeen {
  /** boot time until which it may run; Infinity: detached; null: no lease was granted yet */
  readonly lease: Duration | null
  /** `over`: nothing of it is on the machine (any more) */
  readonly keeper: 'running' | 'over'
  readonly kept: Kept
  /** when the exit file was written */
  readonly keptAt: Instant | null
  readonly workdir: 'absent' | 'ready'
  /** a job's SDK is connected */
  readonly connected: boolean
  /** what became of the restore; null: not known yet */
  readonly restored:
    | { readonly is: 'nothing' | 'restored' }
    | { readonly is: 'failed'; readonly failure: NonNullable<AttemptReport['restoreFailed']> }
    | null
  /** this agent has let it past `job.state()` */
  readonly let: boolean
  /** its processes may stand still */
  readonly frozen: boolean
  /** the job asked for a checkpoint and waits for it at its safe point */
  readonly asks: boolean
  /** the clock jumped and no lease was granted since: it stands still until one is */
  readonly suspect: boolean
  /** the provider will take the machine */
  readonly notice: { readonly endsAt: Instant } | null
  /** the one thing that is being done for it */
  readonly busy: Step['do'] | null
  /** boot time before which nothing that failed is tried again */
  readonly retryAt: Duration
}

export interface Now {
  /** goes on while the machine sleeps */
  readonly boot: Duration
  readonly wall: Instant
}

/** The next thing to do for an attempt. Those that change nothing on disk are harmless when they are done twice. */
export type Step =
  /** nothing, until something is seen or boot time is `until` */
  | { readonly do: 'wait'; readonly until: Duration }
  /** remember this, durably; then ask again */
  | { readonly do: 'change'; readonly change: Partial<AttemptState> }
  /** fetch and unpack the working directory */
  | { readonly do: 'fetch' }
  | { readonly do: 'start' }
  /** let it past `job.state()` */
  | { readonly do: 'let-run' }
  /** look in the chain whether a save that was under way went through */
  | { readonly do: 'look' }
  | { readonly do: 'probe'; readonly move: string; readonly wait: Duration }
  /** bring it to a safe point and save it there; `hold`: and freeze it before it goes on */
  | {
      readonly do: 'save'
      readonly hold: (Pick<Held, 'move' | 'because'> & { readonly holdFor: Duration | null }) | null
      readonly wait: Duration
    }
  | { readonly do: 'thaw' }
  | { readonly do: 'ask-to-end' }
  | { readonly do: 'kill' }
  /** send its declared outputs home */
  | { readonly do: 'deliver' }
  /** nothing of it is wanted any more: its folder goes */
  | { readonly do: 'forget' }
