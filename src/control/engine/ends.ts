import type { AttemptRecord, Base, JobRecord, JobState } from '../../core/jobs/model.ts'
import { attemptOf, type World } from '../../core/jobs/world.ts'
import { why, type Why } from '../../core/reasons.ts'
import { day, never, second, type Instant } from '../../core/time/index.ts'
import type { Change } from '../../store/port.ts'
import {
  collectBehind,
  commit,
  event,
  isPassing,
  storeRetry,
  updateJob,
  type Context,
  type Done,
  type NewEvent,
} from './context.ts'
import { lastWords } from './last-words.ts'
import { aborted, baseFrom, behindSeal, ttlDue } from './moves.ts'
import { isHere, runsNowhere, toEnding } from './records.ts'

const byOf = (state: JobState) => ('by' in state ? state.by : ('portal' as const))
const whyOf = (state: JobState): Why | null => ('why' in state ? state.why : null)

/** What goes with the job's end: an open move is given up, its target let go. */
function withoutMove(world: World, now: Instant): Change[] {
  const { move } = world
  const target = attemptOf(world, move?.target ?? null)
  return [
    ...(move && move.outcome === null ? [aborted(move, why('move.ended'), [], now)] : []),
    ...(target && isHere(target) && target.token !== world.job.current ? [toEnding(target, now)] : []),
  ]
}

/** The job's process ended: the job is over, in the state that follows from how it ended. */
export async function jobEnded(context: Context, world: World, attempt: AttemptRecord, state: JobState): Promise<Done> {
  const now = context.clock.now()
  const { job } = world
  const closed = await behindSeal(context, job, world.move)
  if (closed === 'later') return { later: now + storeRetry }
  const { report } = world.seen(attempt.token)
  const exit = report?.exit ?? null
  // J-TTL-3: it is stopped all the same, and what refused its last checkpoint is named
  const unsaved =
    state.is === 'stopped' && job.wish?.to === 'stop' && job.wish.keep && report?.saveRefused?.move === null
      ? report.saveRefused
      : null
  const status =
    exit === null
      ? null
      : exit.signal === null
        ? { code: exit.code ?? -1, at: exit.at }
        : { signal: exit.signal, at: exit.at }
  await commit(
    context,
    job,
    [
      updateJob(job, {
        state,
        ...runsNowhere,
        wish: null,
        exit: status,
        due: keptUntil(job, state),
        ...closed,
        ...(unsaved && { warnings: [why('stop.unsaved', { error: unsaved.why })] }),
      }),
      ...withoutMove(world, now),
      toEnding(attempt, now, { exit: status }),
    ],
    [
      event(job, 'ended', byOf(state), whyOf(state), {
        state: state.is,
        exit: status,
        ...(unsaved && { refused: unsaved.refused }),
      }),
    ],
  )
  context.logs.nudge(job.id)
  return 'again'
}

const keptUntil = (job: JobRecord, state: JobState): Instant =>
  job.lastSlot === 0
    ? never
    : ('resumableUntil' in state && state.resumableUntil !== null ? state.resumableUntil : state.since) + day

/** The machine went away with the job on it. The chain is closed first: only then is it known what the job can go on from. */
export async function lost(context: Context, world: World, attempt: AttemptRecord, proof: string): Promise<Done> {
  const { job } = world
  let base: Base | null
  let lastSlot: number
  let alone: readonly NewEvent[] = []
  try {
    // also where no checkpoint is known: one that is just being written must not come after the job was given up without it
    const sealed = await context.chains.seal(job.id, job.lastSlot, `lost ${attempt.id}`)
    lastSlot = sealed.sealedSlot
    const newest = sealed.adopted.at(-1)
    base = newest ? baseFrom(newest, context.clock.now()) : job.base
    for (const error of sealed.damaged)
      context.log.warn({ job: job.id, error: String(error) }, 'a late checkpoint cannot be used')
    if (newest) alone = await lastWords(context, job, attempt, newest)
  } catch (error) {
    context.log.warn({ job: job.id, error: String(error) }, 'the chain could not be sealed; it is tried again')
    return { later: context.clock.now() + storeRetry }
  }
  const now = context.clock.now()
  const state = stateAfterLoss(job, attempt, base, proof, now)
  await commit(
    context,
    job,
    [
      updateJob(job, {
        state,
        ...runsNowhere,
        wish: null,
        base,
        lastSlot,
        due: state.is === 'suspended' ? Math.min(state.expiresAt, ttlDue(job)) : keptUntil({ ...job, lastSlot }, state),
      }),
      ...withoutMove(world, now),
      toEnding(attempt, now),
    ],
    [
      ...alone,
      event(job, state.is === 'suspended' ? 'suspended' : 'ended', 'portal', whyOf(state), {
        state: state.is,
        offer: attempt.offer.id,
        slot: base?.slot ?? null,
        exit: null,
      }),
    ],
  )
  context.logs.nudge(job.id)
  return 'again'
}

function stateAfterLoss(
  job: JobRecord,
  attempt: AttemptRecord,
  base: Base | null,
  proof: string,
  now: Instant,
): JobState {
  const { settings } = job.spec
  if (job.wish?.to === 'stop')
    return {
      is: 'stopped',
      since: now,
      by: job.wish.by,
      why: job.wish.why,
      resumableUntil: base === null ? null : now + settings.ttlKeep,
    }
  if (base === null)
    return {
      is: 'failed',
      since: now,
      why: why('lost.failed', { offer: attempt.offer.id, proof }),
      resumableUntil: null,
    }
  return {
    is: 'suspended',
    since: now,
    by: { policy: 'lease' },
    why: why('lost.suspended', {
      offer: attempt.offer.id,
      proof,
      slot: base.slot,
      lost_ms: Math.max(0, now - base.savedAt),
    }),
    expiresAt: now + settings.checkpointKeep,
  }
}

/** A checkpoint that the job made by itself: verified, it becomes what the job can go on from. */
export async function adopt(context: Context, world: World, slot: number): Promise<Done> {
  const { job } = world
  let base: Base | null = null
  try {
    base = baseFrom(await context.chains.verify(job.id, slot), context.clock.now())
  } catch (error) {
    if (isPassing(error)) return { later: context.clock.now() + storeRetry }
    context.log.warn({ job: job.id, slot, error: String(error) }, 'a checkpoint that was reported cannot be used')
  }
  // the slot is taken either way: it is not looked at again
  const applied = await commit(context, job, [updateJob(job, { lastSlot: slot, ...(base && { base }) })], [])
  if (applied !== null && base) collectBehind(context, job.id, base.slot)
  return 'again'
}

/** Nothing of the job runs: it is ended as it is. What was being started for it is let go. */
export async function endJob(context: Context, world: World, state: JobState): Promise<Done> {
  const { job } = world
  await commit(
    context,
    job,
    [
      updateJob(job, { state, wish: null, due: keptUntil(job, state) }),
      ...world.attempts.filter(isHere).map((attempt) => toEnding(attempt, context.clock.now())),
    ],
    [event(job, 'ended', byOf(state), whyOf(state), { state: state.is, exit: null })],
  )
  context.logs.nudge(job.id)
  return 'again'
}

export async function unreachable(context: Context, world: World, since: Instant | null, now: Instant): Promise<Done> {
  const { job } = world
  if (job.state.is !== 'running') return 'again'
  const offer = world.attempts.find(({ token }) => token === job.current)?.offer.id ?? ''
  const reason =
    since === null
      ? why('lost.back', { offer, silent_ms: now - (job.state.unreachableSince ?? now) })
      : why('lost.unreachable', { offer })
  await commit(
    context,
    job,
    [updateJob(job, { state: { ...job.state, unreachableSince: since } })],
    [event(job, since === null ? 'reachable' : 'unreachable', 'portal', reason)],
  )
  return 'again'
}

/** The checkpoint's time is over: its bytes go, and with them what the job could have gone on from. */
export async function expire(context: Context, world: World): Promise<Done> {
  try {
    await context.chains.collect(world.job.id, null)
  } catch (error) {
    context.log.warn(
      { job: world.job.id, error: String(error) },
      'an expired checkpoint could not be removed; it is tried again',
    )
    return { later: context.clock.now() + 60 * second }
  }
  await commit(context, world.job, [updateJob(world.job, { base: null, lastSlot: 0, due: never })], [])
  return 'again'
}
