import type { AttemptRecord, JobRecord, RefusedValue } from '../../core/jobs/model.ts'
import { canBeTaken } from '../../core/jobs/placement.ts'
import { leaseReckoned, spentOn, worstCase } from '../../core/jobs/spending.ts'
import type { World } from '../../core/jobs/world.ts'
import { sentence, why, type Why } from '../../core/reasons.ts'
import { second, type Instant } from '../../core/time/index.ts'
import type { Provider } from '../../providers/port.ts'
import type { Change } from '../../store/port.ts'
import { commit, event, updateJob, type Context, type Done, type NewEvent } from './context.ts'
import { fallBack, isRefusal } from './place.ts'
import { commitMoney, passedOverAnd, runsAs, toEnding, updateAttempt, withoutTarget } from './records.ts'
import type { Sights } from './world.ts'

const retryAfter = second

const providerOf = (context: Context, attempt: AttemptRecord): Provider => {
  const provider = context.providers.get(attempt.offer.connection)
  if (!provider)
    throw new Error(`there is no connection ${attempt.offer.connection} any more, which attempt ${attempt.id} needs`)
  return provider
}

/** Asks the provider for the machine of a row. The row's id makes the same call twice one machine. */
export async function start(context: Context, sights: Sights, world: World, attempt: AttemptRecord): Promise<Done> {
  const { job } = world
  const { settings } = job.spec
  const provider = providerOf(context, attempt)
  let machineId: string
  try {
    ;({ machineId } = await provider.start({
      rowId: attempt.id,
      installation: context.installation,
      offer: attempt.offer,
      needs: attempt.needs,
      bootstrap: {
        agentId: attempt.agentId,
        url: context.url(),
        token: context.tokenOf(attempt.agentId),
        checkin: settings.checkin,
        checkpoints: context.checkpoints,
      },
      hardStopAfter: leaseReckoned(settings.checkin, settings),
    }))
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    if (!isRefusal(error)) {
      sights.mayBeStarted(attempt.id)
      context.log.warn({ attempt: attempt.id, error: message }, 'a machine could not be started; it is tried again')
      const now = context.clock.now()
      if (now >= attempt.intendedAt + settings.startTimeout)
        return giveUpStart(context, world, attempt, {
          because: why('start.failed', { error: message }),
          refused: [],
          tryNext: true,
        })
      return { later: now + retryAfter }
    }
    return refusedStart(context, world, attempt, {
      kind: error.kind,
      error: message,
      maybeStarted: sights.isMaybeStarted(attempt),
    })
  }
  const now = context.clock.now()
  context.agents.serve(attempt)
  if (job.state.is === 'starting' && context.agents.heard(attempt).connected) {
    await commit(context, job, bound(world, attempt, now, { machineId, startedAt: now }), startedEvents(job, attempt))
    return 'again'
  }
  await commit(context, job, [updateAttempt(attempt, { state: 'started', machineId, startedAt: now })], [])
  return 'again'
}

/** J-RUN-7: on a machine that may be taken, a job of which nothing is known yet can lose all its work; said, not hidden. */
const startedEvents = (job: JobRecord, { offer, token }: AttemptRecord): NewEvent[] => [
  event(job, 'started', 'portal', null, { offer: offer.id, attempt: token }),
  ...(canBeTaken(offer) && job.base === null
    ? [event(job, 'warned', 'portal', why('place.unguarded', { offer: offer.id }))]
    : []),
]

/** A first start becomes current with the write that binds it: there is nothing to restore. */
function bound({ job }: World, attempt: AttemptRecord, now: Instant, more: Partial<AttemptRecord> = {}): Change[] {
  return [
    updateJob(job, runsAs(attempt, now)),
    updateAttempt(attempt, { state: 'bound', boundAt: now, ranFrom: now, ...more }),
  ]
}

export async function bind(context: Context, world: World, attempt: AttemptRecord, current: boolean): Promise<Done> {
  const now = context.clock.now()
  context.agents.serve(attempt)
  if (current) await commit(context, world.job, bound(world, attempt, now), startedEvents(world.job, attempt))
  else
    await commit(
      context,
      world.job,
      [updateJob(world.job, {}), updateAttempt(attempt, { state: 'bound', boundAt: now })],
      [],
    )
  return 'again'
}

/** The resumed attempt has restored and verified: it becomes the current one. */
export async function commitResume(context: Context, world: World, attempt: AttemptRecord): Promise<Done> {
  const now = context.clock.now()
  const { job } = world
  await commit(
    context,
    job,
    [updateJob(job, { ...runsAs(attempt, now), exit: null }), updateAttempt(attempt, { ranFrom: now })],
    [event(job, 'resumed', 'portal', null, { offer: attempt.offer.id, attempt: attempt.token, slot: attempt.from })],
  )
  return 'again'
}

async function refusedStart(
  context: Context,
  { job, move }: World,
  attempt: AttemptRecord,
  { kind, error, maybeStarted }: { readonly kind: string; readonly error: string; readonly maybeStarted: boolean },
): Promise<Done> {
  const now = context.clock.now()
  const passedOver = passedOverAnd(job, { offer: attempt.offer.id, why: error })
  const changes: Change[] = [
    updateJob(job, { passedOver, due: now, ...withoutMachine(job, now) }),
    // an earlier try whose answer did not come may have its effect yet: only then has anything to be looked for
    ...(maybeStarted ? [toEnding(attempt, now)] : neverStarted(attempt, now)),
    ...withoutTarget(move, attempt),
  ]
  await commit(context, job, changes, [
    event(job, 'warned', 'portal', why('place.refused', { offer: attempt.offer.id, kind, error })),
  ])
  return 'again'
}

const neverStarted = (attempt: AttemptRecord, now: Instant): Change[] => [
  updateAttempt(attempt, { state: 'gone', goneAt: now, spent: { micros: 0, currency: attempt.offer.price.currency } }),
  commitMoney(attempt, -attempt.committed.micros),
]

/** The state of a job whose start or resume has to look for another machine. */
function withoutMachine(job: JobRecord, now: Instant): Partial<JobRecord> {
  if (job.state.is === 'starting')
    return {
      state: { is: 'queued', since: now, why: why('place.none', { offers: 0, refusals: 'looking for another' }) },
    }
  if (job.state.is === 'resuming') return { state: { ...job.state, token: null } }
  return {}
}

export interface GivenUp {
  readonly because: Why
  /** values that the target could not take back */
  readonly refused: readonly RefusedValue[]
  /** false: the state itself is the trouble, and another machine would not help */
  readonly tryNext: boolean
}

/** A start that came to nothing after a machine may exist: the row goes, the job falls back or looks for another place. */
export async function giveUpStart(
  context: Context,
  world: World,
  attempt: AttemptRecord,
  { because, refused, tryNext }: GivenUp,
): Promise<Done> {
  const now = context.clock.now()
  const { job, move } = world
  const passedOver = passedOverAnd(job, { offer: attempt.offer.id, why: 'it did not come up' })
  if (tryNext) {
    await commit(
      context,
      job,
      [
        updateJob(job, { passedOver, due: now, ...withoutMachine(job, now) }),
        toEnding(attempt, now),
        ...withoutTarget(move, attempt),
      ],
      [event(job, 'warned', 'portal', because, { offer: attempt.offer.id })],
    )
    return 'again'
  }
  const failed = why('resume.failed', { error: sentence(because) })
  await commit(
    context,
    job,
    [
      ...fallBack(job, now, { passedOver: [], warnings: job.wish?.to === 'stop' ? [] : [failed] }),
      toEnding(attempt, now),
    ],
    [
      job.wish?.to === 'stop'
        ? event(job, 'ended', job.wish.by, job.wish.why, { state: 'stopped', exit: null })
        : event(job, 'suspended', 'portal', failed, { refused }),
    ],
  )
  return 'again'
}

/** Ends a machine that was let go, and looks whether it is gone. Late or doubled, it does no harm: the row is read at `ending`. */
export async function endMachine(
  context: Context,
  sights: Sights,
  world: World,
  attempt: AttemptRecord,
): Promise<Done> {
  if (attempt.machineId === null) return lookForStarted(context, sights, world, attempt)
  const provider = providerOf(context, attempt)
  try {
    await provider.end(attempt.machineId)
  } catch (error) {
    context.log.warn({ attempt: attempt.id, error: String(error) }, 'a machine could not be ended; it is tried again')
  }
  return observe(context, sights, attempt)
}

/**
 * A start whose answer did not come may have had its effect, or have it yet: a machine of this row is not there only when two
 * complete listings lack it, the provider's settling time apart (hard-parts 2).
 */
async function lookForStarted(context: Context, sights: Sights, world: World, attempt: AttemptRecord): Promise<Done> {
  const provider = providerOf(context, attempt)
  try {
    const listed = (await provider.list()).find(({ rowId }) => rowId === attempt.id)
    if (listed) {
      const { machineId, startedAt } = listed
      await commit(context, world.job, [updateAttempt(attempt, { machineId, startedAt })], [])
      return 'again'
    }
    sights.notListed(attempt.id, provider.settles, context.clock.now())
  } catch (error) {
    sights.provider(attempt.id, 'unknown', error instanceof Error ? error.message : String(error), context.clock.now())
  }
  return 'again'
}

export async function observe(context: Context, sights: Sights, attempt: AttemptRecord): Promise<Done> {
  if (attempt.machineId === null) return { later: context.clock.now() + retryAfter }
  try {
    const observed = await providerOf(context, attempt).observe(attempt.machineId)
    sights.provider(
      attempt.id,
      observed.is,
      observed.is === 'terminal' ? observed.state : observed.is,
      context.clock.now(),
    )
  } catch (error) {
    sights.provider(attempt.id, 'unknown', error instanceof Error ? error.message : String(error), context.clock.now())
  }
  return 'again'
}

/** A machine that is proven gone: its money is settled at what it cost. */
export async function settle(context: Context, sights: Sights, world: World, attempt: AttemptRecord): Promise<Done> {
  const now = context.clock.now()
  const spent = spentOn({ ...attempt, goneAt: now }, now)
  const applied = await commit(
    context,
    world.job,
    [
      updateAttempt(attempt, { state: 'gone', goneAt: now, spent }),
      commitMoney(attempt, spent.micros - attempt.committed.micros),
    ],
    [],
  )
  if (applied !== null) {
    context.agents.forget(attempt)
    context.logs.release(attempt.id)
    sights.forget(attempt.id)
  }
  return 'again'
}

/**
 * Grants a lease that was asked for: the money and the moment are written first, the answer is sent after (hard-parts 3).
 *
 * @param along what explains it, written with it
 */
export async function renew(
  context: Context,
  sights: Sights,
  world: World,
  attemptId: string,
  nonce: string,
  along: readonly Change[],
): Promise<'granted' | 'cap' | 'raced'> {
  const attempt = world.attempts.find(({ id }) => id === attemptId)
  if (!attempt || attempt.state !== 'bound') return 'raced'
  const { settings } = world.job.spec
  const length = settings.leaseLength === 'detached' ? 365 * 24 * 3_600_000 : settings.leaseLength
  const now = context.clock.now()
  const committed =
    settings.leaseLength === 'detached' ? attempt.committed : worstCase(attempt, now, leaseReckoned(length, settings))
  const more = committed.micros - attempt.committed.micros
  const applied = await context.store.apply({
    changes: [
      updateAttempt(attempt, { lease: { grantedAt: now, length }, committed }),
      commitMoney(attempt, more, more > 0),
      ...along,
    ],
    events: [],
  })
  if (applied.is === 'refused') return applied.why === 'cap' ? 'cap' : 'raced'
  if (applied.is === 'unknown') return 'raced'
  sights.renewAsked(attemptId, null)
  context.agents.send(attempt.agentId, { t: 'granted', attempt: attemptId, nonce, length })
  const provider = context.providers.get(attempt.offer.connection)
  if (attempt.machineId !== null)
    await provider?.renew?.(attempt.machineId, leaseReckoned(length, settings)).catch((error: unknown) => {
      context.log.warn({ attempt: attemptId, error: String(error) }, 'the hard stop at the provider could not be moved')
    })
  return 'granted'
}
