import { costOf, plus, type Money } from '../money/index.ts'
import type { Duration, Instant } from '../time/index.ts'
import type { AttemptRecord, JobRecord } from './model.ts'
import type { JobSettings } from './settings.ts'

/**
 * How long machines have run a job, over all attempts (J-TTL-1): a stay counts from when it could execute. Attempts never
 * execute at the same time, so a move with two machines counts once.
 */
export const ranFor = (job: JobRecord, attempts: readonly AttemptRecord[], now: Instant): Duration =>
  attempts.reduce(
    (sum, { ranFrom, ranUntil }) =>
      sum + (ranFrom === null ? 0 : Math.max(0, (ranUntil ?? now) - Math.max(ranFrom, job.ttlFrom))),
    0,
  )

/** What one stay has cost up to now: machine time at the price agreed when it was rented (J-BUDGET-2). */
export const spentOn = (attempt: AttemptRecord, now: Instant): Money =>
  attempt.spent ??
  (attempt.startedAt === null
    ? { micros: 0, currency: attempt.offer.price.currency }
    : costOf(attempt.offer.price, (attempt.goneAt ?? now) - attempt.startedAt))

/** What a job has cost over all its stays. */
export const spent = (attempts: readonly AttemptRecord[], now: Instant): Money =>
  attempts.map((attempt) => spentOn(attempt, now)).reduce(plus, { micros: 0, currency: 'USD' })

/** The control plane's reckoning of a lease's length: the machine's own hard stop is never later (clocks may run 1% apart). */
export const leaseReckoned = (length: Duration, settings: JobSettings): Duration =>
  Math.ceil(length * 1.01) + settings.leaseMargin

/** The worst that a stay can cost from its start until its hard stop, when that is `ahead` of now (J-CAP-1). */
export const worstCase = (
  attempt: Pick<AttemptRecord, 'offer' | 'startedAt' | 'intendedAt'>,
  now: Instant,
  ahead: Duration,
): Money => costOf(attempt.offer.price, now - (attempt.startedAt ?? attempt.intendedAt) + ahead)
