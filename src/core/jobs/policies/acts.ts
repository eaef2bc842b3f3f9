import type { Verdict } from '../../decide.ts'
import { why, type Facts, type ReasonCode, type Why } from '../../reasons.ts'
import type { Instant } from '../../time/index.ts'

/** What a policy can ask for. Only `renew` leaves the job where it is. */
export type JobAct =
  | { readonly do: 'suspend' }
  | { readonly do: 'stop' }
  /** ends a job that is suspended already: nothing of it runs */
  | { readonly do: 'end' }
  | { readonly do: 'renew'; readonly attempt: string; readonly nonce: string }

export const changesPlace = (act: JobAct): boolean => act.do !== 'renew'

export const rest = (code: ReasonCode, facts: Facts, lookAgainAt: Instant): Verdict<JobAct> => ({
  kind: 'rest',
  why: why(code, facts),
  lookAgainAt,
})
export const warn = (code: ReasonCode, facts: Facts, lookAgainAt: Instant): Verdict<JobAct> => ({
  kind: 'warn',
  why: why(code, facts),
  lookAgainAt,
})
export const act = (what: JobAct, because: Why, lookAgainAt?: Instant): Verdict<JobAct> =>
  lookAgainAt === undefined
    ? { kind: 'act', act: what, why: because }
    : { kind: 'act', act: what, why: because, lookAgainAt }
