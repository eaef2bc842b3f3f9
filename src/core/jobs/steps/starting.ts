import { why } from '../../reasons.ts'
import { second, type Duration, type Instant } from '../../time/index.ts'
import type { AttemptRecord, JobState } from '../model.ts'
import { attemptOf, provenGone, type Seen, type World } from '../world.ts'
import { meanwhile, observeEvery } from './running.ts'
import { wait, type Step } from './step.ts'

/** From `queued` or a resume to a machine that runs the job. */
export function starting(world: World, now: Instant): Step {
  const { job } = world
  const { state } = job
  if (job.wish?.to === 'stop') {
    if (state.is === 'resuming') return fallBack(world, state, 'end.stopped', now)
    return {
      do: 'end-job',
      state: { is: 'stopped', since: now, by: job.wish.by, why: job.wish.why, resumableUntil: null },
    }
  }
  if (state.is === 'queued') {
    // a place that was not there is looked for again when something changed, or as a backstop after a while
    if (job.due > now) return wait(job.due)
    return { do: 'place', for: 'start' }
  }
  if (state.is === 'resuming' && state.token === null) {
    // J-LEASE-3: nothing is given to a new attempt before the old ones are proven gone
    if (world.attempts.some((one) => one.state !== 'gone' && one.ranFrom !== null)) return wait(now + 1000)
    if (job.due > now) return wait(job.due)
    return { do: 'place', for: 'resume' }
  }
  if (state.is !== 'starting' && state.is !== 'resuming') return wait(Infinity)
  const attempt = attemptOf(world, state.token)
  if (!attempt || attempt.state === 'ending' || attempt.state === 'gone')
    return { do: 'place', for: state.is === 'starting' ? 'start' : 'resume' }
  const up = bringUp(attempt, world, now)
  if (up) return up
  if (state.is === 'starting') return { do: 'bind', attempt, current: true }
  return restoring(attempt, world, now) ?? { do: 'commit-resume', attempt }
}

/** A stop while resuming: nothing was lost; it is stopped, and can be resumed as before. */
function fallBack(world: World, state: Extract<JobState, { is: 'resuming' }>, code: 'end.stopped', now: Instant): Step {
  const attempt = attemptOf(world, state.token)
  if (attempt && attempt.state !== 'ending' && attempt.state !== 'gone')
    return { do: 'give-up-start', attempt, why: why(code), refused: [], tryNext: false }
  const { wish, spec } = world.job
  return wish?.to === 'stop'
    ? {
        do: 'end-job',
        state: { is: 'stopped', since: now, by: wish.by, why: wish.why, resumableUntil: now + spec.settings.ttlKeep },
      }
    : { do: 'end-job', state: state.was }
}

/**
 * Brings a machine up until it is this row's own: started, checked in, bound. Used for first starts, resumes and a move's target.
 *
 * @returns null once it is bound
 */
export function bringUp(attempt: AttemptRecord, world: World, now: Instant): Step | null {
  const { startTimeout } = world.job.spec.settings
  const seen = world.seen(attempt.token)
  switch (attempt.state) {
    case 'intended':
      return { do: 'start', attempt }
    case 'started':
    case 'ready': {
      if (seen.connected && seen.machine !== null) {
        // a first start becomes current with the same write (the caller says so); everything else is bound first
        return world.job.state.is === 'starting' ? null : { do: 'bind', attempt, current: false }
      }
      const gone = provenGone(seen)
      const until = (attempt.startedAt ?? attempt.intendedAt) + startTimeout
      if (gone !== null || now >= until)
        return {
          do: 'give-up-start',
          attempt,
          why:
            gone === null
              ? why('start.timeout', { offer: attempt.offer.id, waited_ms: startTimeout })
              : why('start.failed', { error: gone }),
          refused: [],
          tryNext: true,
        }
      // it may have ended while it booted, and a provider that is not asked may not go on with it either
      const ask = Math.max(attempt.startedAt ?? attempt.intendedAt, seen.provider?.askedAt ?? -Infinity) + observeEvery
      return now >= ask ? { do: 'observe', attempt } : wait(Math.min(ask, until))
    }
    case 'bound':
      return null
    default:
      return wait(Infinity)
  }
}

/**
 * Waits for a bound attempt to have restored what it starts from.
 *
 * @returns null once it is prepared
 */
export function restoring(attempt: AttemptRecord, world: World, now: Instant): Step | null {
  if (attempt.from === null) return null
  const seen = world.seen(attempt.token)
  const failed = restoreFailure(seen, now)
  if (failed !== null)
    return {
      do: 'give-up-start',
      attempt,
      why: why('move.restore_failed', { offer: attempt.offer.id, error: failed }),
      refused: seen.report?.restoreFailed?.refused ?? [],
      tryNext: false,
    }
  if (seen.report?.phase === 'prepared') return null
  const { restoreTimeout } = world.job.spec.settings
  const until = (attempt.boundAt ?? now) + restoreTimeout
  if (now >= until)
    return {
      do: 'give-up-start',
      attempt,
      why: why('move.restore_failed', { offer: attempt.offer.id, error: `not done within ${restoreTimeout / 1000} s` }),
      refused: [],
      tryNext: false,
    }
  return meanwhile(wait(Math.min(until, reasonDue(seen, now))), [attempt], world, now)
}

/** The status with which an SDK ends a job that could not be restored; its agent tells the reason in a report of its own. */
const notRestored = 75
const reasonTakes: Duration = 3 * second

/** Until when the reason of a restore that failed is waited for; Infinity: it is not. */
export const reasonDue = ({ report }: Seen, now: Instant): Instant => {
  const due = (report?.exit?.at ?? 0) + reasonTakes
  return report?.exit?.code === notRestored && report.restoreFailed === null && now < due ? due : Infinity
}

/** Why a restore cannot succeed any more; null: it still can, or the reason is about to be told. */
export function restoreFailure(seen: Seen, now: Instant): string | null {
  const { report } = seen
  if (report?.restoreFailed) return report.restoreFailed.why
  if (reasonDue(seen, now) !== Infinity) return null
  if (report?.exit)
    return report.exit.error ?? `the job ended before it was restored (${report.exit.signal ?? report.exit.code})`
  if (seen.machine?.notice) return 'the machine is being taken itself'
  return provenGone(seen)
}
