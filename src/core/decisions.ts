import type { Why } from './reasons.ts'
import type { Instant } from './time/index.ts'

/** What came of a verdict: what `portal explain` shows. */
export type Outcome = 'rested' | 'acted' | 'declined' | 'refused' | 'warned' | 'dropped' | 'outranked'

/** One decision as it is kept: equal ones in a row fold into one with a count (J-WHY-1). */
export interface DecisionRecord {
  readonly id: string
  readonly subject: string
  readonly policy: string
  readonly outcome: Outcome
  readonly why: Why
  readonly firstAt: Instant
  readonly lastAt: Instant
  readonly count: number
  readonly lookAgainAt: Instant | null
}

/** Something that happened, append-only, in the transaction of the change it tells of. */
export interface EventRecord {
  /** drawn by the store, rising: what `Last-Event-ID` means */
  readonly seq: number
  readonly at: Instant
  /** a job's id, a connection's name, or `portal` */
  readonly subject: string
  readonly kind: string
  readonly by: string
  readonly why: Why | null
  readonly facts: Readonly<Record<string, unknown>>
}
