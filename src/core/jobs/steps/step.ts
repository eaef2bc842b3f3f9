import { why, type Facts, type ReasonCode, type Why } from '../../reasons.ts'
import type { Instant } from '../../time/index.ts'
import type { AttemptRecord, JobState, MoveRecord, RefusedValue } from '../model.ts'

/**
 * The next thing to do for one job, derived from what is remembered and seen. Each is idempotent: done twice, or half done and
 * asked again, it comes to the same. `wait` ends a look.
 */
export type Step =
  /** choose an offer and intend a machine at it */
  | { readonly do: 'place'; readonly for: 'start' | 'resume' | 'move' }
  /** ask the provider for the machine of this row */
  | { readonly do: 'start'; readonly attempt: AttemptRecord }
  /** its machine has checked in: it is this row's now, and if nothing has to be restored first it may run */
  | { readonly do: 'bind'; readonly attempt: AttemptRecord; readonly current: boolean }
  /** the start or restore did not come to anything: let the row go and fall back */
  | {
      readonly do: 'give-up-start'
      readonly attempt: AttemptRecord
      readonly why: Why
      readonly refused: readonly RefusedValue[]
      readonly tryNext: boolean
    }
  /** restored and verified: it becomes the current one */
  | { readonly do: 'commit-resume'; readonly attempt: AttemptRecord }
  | { readonly do: 'begin-move'; readonly kind: MoveRecord['kind']; readonly on: string | null; readonly why: Why }
  | { readonly do: 'advance'; readonly move: MoveRecord; readonly to: MoveRecord['step']; readonly slot?: number }
  | { readonly do: 'abort'; readonly move: MoveRecord; readonly why: Why; readonly refused: readonly RefusedValue[] }
  /** verify a checkpoint that the job made by itself, and take it as its base */
  | { readonly do: 'adopt'; readonly attempt: AttemptRecord; readonly slot: number }
  /** close the chain behind the slot; then commit, in one write */
  | { readonly do: 'seal-and-commit'; readonly move: MoveRecord }
  /** a committed suspension whose source was ended while it was held, or is proven gone */
  | { readonly do: 'confirm-suspended'; readonly move: MoveRecord; readonly attempt: AttemptRecord }
  /** the job's process ended, whatever made it */
  | { readonly do: 'job-ended'; readonly attempt: AttemptRecord; readonly state: JobState }
  /** the machine is gone with the job on it: suspended on its base, or failed */
  | { readonly do: 'lost'; readonly attempt: AttemptRecord; readonly proof: string }
  | { readonly do: 'unreachable'; readonly since: Instant | null }
  /** ask the provider what became of its machine */
  | { readonly do: 'observe'; readonly attempt: AttemptRecord }
  /** nothing of the job runs: end it as it is */
  | { readonly do: 'end-job'; readonly state: JobState }
  /** end it at the provider; where it is not known whether it was started at all, look for it */
  | { readonly do: 'end-machine'; readonly attempt: AttemptRecord }
  | { readonly do: 'settle'; readonly attempt: AttemptRecord }
  | { readonly do: 'expire' }
  | { readonly do: 'wait'; readonly until: Instant }

export const wait = (until: Instant): Step => ({ do: 'wait', until })
export const abort = (
  move: MoveRecord,
  code: ReasonCode,
  facts: Facts = {},
  refused: readonly RefusedValue[] = [],
): Step => ({
  do: 'abort',
  move,
  why: why(code, facts),
  refused,
})
