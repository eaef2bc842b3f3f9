import { why } from '../../reasons.ts'
import { second, type Duration, type Instant } from '../../time/index.ts'
import type { AttemptExit } from '../agent.ts'
import type { AttemptRecord, JobState, Wish } from '../model.ts'
import { currentOf, leaseOver, provenGone, unreachableAfter, type Seen, type World } from '../world.ts'
import { wait, type Step } from './step.ts'

/** How long a job that ended is waited for with the rest of its log and its declared outputs, if its agent goes silent meanwhile. */
const lastWordsTake: Duration = 60 * second

/** How often the provider of a machine that cannot be heard is asked what became of it. */
export const observeEvery: Duration = 5 * second

/** Asks the provider of a machine that cannot be heard, now and then, until it is heard, proven gone, or its lease is over. */
export function whileUnheard(attempt: AttemptRecord, seen: Seen, now: Instant): Step {
  const next = Math.max(seen.heardAt + unreachableAfter, (seen.provider?.askedAt ?? -Infinity) + observeEvery)
  const ends = seen.leaseEnds !== null && seen.leaseEnds > now ? seen.leaseEnds : Infinity
  return now >= next ? { do: 'observe', attempt } : wait(Math.min(next, ends))
}

/** While something is waited for, machines that cannot be heard are asked about: one that is gone ends the wait early. */
export function meanwhile(
  step: Step,
  machines: readonly (AttemptRecord | null)[],
  { seen }: World,
  now: Instant,
): Step {
  let then = step
  for (const attempt of machines) {
    if (then.do !== 'wait') return then
    if (attempt?.state !== 'bound' || seen(attempt.token).connected) continue
    const look = whileUnheard(attempt, seen(attempt.token), now)
    then = look.do === 'wait' ? wait(Math.min(then.until, look.until)) : look
  }
  return then
}

/** A job that runs: did it end, can it be heard, what do people want of it. */
export function running(world: World, now: Instant): Step {
  const { job } = world
  const current = currentOf(world)
  if (!current || job.state.is !== 'running') return wait(Infinity)
  const seen = world.seen(current.token)
  const { report } = seen
  if (report?.exit) return exited(world, current, report.exit, now)

  const gone = provenGone(seen)
  if (gone !== null) return { do: 'lost', attempt: current, proof: gone }
  const { unreachableSince } = job.state
  if (!seen.connected && now >= seen.heardAt + unreachableAfter) {
    if (unreachableSince === null) return { do: 'unreachable', since: seen.heardAt }
    // unreachable is not dead
    if (leaseOver(seen, now)) return { do: 'lost', attempt: current, proof: 'its lease has run out' }
    return whileUnheard(current, seen, now)
  }
  if (unreachableSince !== null && seen.connected) return { do: 'unreachable', since: null }

  // its agent never heard that it was to begin: nothing is there that could be asked to end
  if (job.wish?.to === 'stop' && seen.connected && report === null && !seen.unanswered)
    return { do: 'job-ended', attempt: current, state: stoppedAs(world, job.wish, now) }

  return (
    newlySaved(world, current) ??
    wished(world, now) ??
    wait(seen.connected ? Infinity : seen.heardAt + unreachableAfter)
  )
}

/** A checkpoint that the job made since the last one known becomes its base. */
function newlySaved({ job, seen }: World, attempt: AttemptRecord): Step | null {
  const saved = seen(attempt.token).report?.saved
  return saved && saved.slot > job.lastSlot ? { do: 'adopt', attempt, slot: saved.slot } : null
}

/** What a person, or a policy in their place, asked for; a stop is ordered from the record itself and ends with an exit. */
function wished({ job, seen }: World, _now: Instant): Step | null {
  const { wish } = job
  if (wish === null || wish.to === 'stop' || job.current === null) return null
  const { report } = seen(job.current)
  // a process that is being started cannot be asked yet
  if (!report || !['running', 'held', 'promised', 'saving'].includes(report.phase)) return null
  const asked = why(wish.to === 'move' ? 'ask.move' : 'ask.suspend', {
    by: 'person' in wish.by ? wish.by.person : wish.by.policy,
  })
  return wish.to === 'move'
    ? { do: 'begin-move', kind: 'move', on: wish.on, why: asked }
    : { do: 'begin-move', kind: 'suspension', on: null, why: asked }
}

/** The job's process ended. First the rest of its log and its outputs come in: what it wrote is not lost with its machine. */
export function exited(world: World, attempt: AttemptRecord, exit: AttemptExit, now: Instant): Step {
  const seen = world.seen(attempt.token)
  const { report } = seen
  const allIn = report !== null && seen.logBytes >= report.logBytes && seen.outputsIn
  if (!allIn && (seen.connected || now < seen.heardAt + lastWordsTake))
    return wait(seen.connected ? now + lastWordsTake : seen.heardAt + lastWordsTake)

  const saved = newlySaved(world, attempt)
  if (saved) return saved

  // the machine ended it at its hard stop, or because it was given up: the job itself did not end
  if (exit.how === 'deadline' || exit.how === 'superseded' || exit.how === 'ended' || exit.how === 'killed-held')
    return {
      do: 'lost',
      attempt,
      proof: exit.how === 'deadline' ? 'its machine ended it at the hard stop' : 'its machine ended it',
    }
  // J-OOM-2: a process that was killed did not end by itself; what it saved goes on, what it had not saved fails with it
  if (wasKilled(exit) && (world.job.base !== null || report?.saved != null || report?.held != null))
    return { do: 'lost', attempt, proof: 'its processes were killed' }
  return { do: 'job-ended', attempt, state: stateAfter(world, exit, now) }
}

/** Killed by the kernel, a person or a machine that goes: no program ends itself in this way. */
export const wasKilled = ({ how, signal }: AttemptExit): boolean => how === 'exited' && signal === 'SIGKILL'

const resumableFor = ({ job }: World, now: Instant): Instant | null =>
  job.base === null ? null : now + job.spec.settings.ttlKeep

const stoppedAs = (world: World, { by, why: because }: Extract<Wish, { to: 'stop' }>, now: Instant): JobState => ({
  is: 'stopped',
  since: now,
  by,
  why: because,
  resumableUntil: resumableFor(world, now),
})

function stateAfter(world: World, exit: AttemptExit, now: Instant): JobState {
  const { wish } = world.job
  // an end of its own, in the moment before the stop reached it, is its end
  if (wish?.to === 'stop' && exit.how === 'stopped') return stoppedAs(world, wish, now)
  if (exit.how === 'could-not-start')
    return {
      is: 'failed',
      since: now,
      why: why('end.failed_start', { error: exit.error ?? 'it could not be started' }),
      resumableUntil: null,
    }
  if (exit.code === 0) return { is: 'succeeded', since: now }
  return {
    is: 'failed',
    since: now,
    why:
      exit.signal === null ? why('end.exited', { code: exit.code ?? -1 }) : why('end.signal', { signal: exit.signal }),
    resumableUntil: resumableFor(world, now),
  }
}
