import type { AttemptRecord, JobRecord, JobState, Offer, PassedOver } from '../../core/jobs/model.ts'
import { choose, refusalsInWords } from '../../core/jobs/placement.ts'
import { leaseReckoned, worstCase } from '../../core/jobs/spending.ts'
import { currentOf, type World } from '../../core/jobs/world.ts'
import { why } from '../../core/reasons.ts'
import { day, never, type Instant } from '../../core/time/index.ts'
import { ProviderError } from '../../providers/port.ts'
import type { Change } from '../../store/port.ts'
import { commit, event, updateJob, type Context, type Done, type NewEvent } from './context.ts'
import { abortMove } from './moves.ts'
import { isOwned, leftOnOwned, market } from './offers.ts'
import { commitMoney, passedOverAnd, updateMove } from './records.ts'

/** Chooses an offer and intends a machine at it: the row, its money and the job's next state in one write, before anybody is asked. */
export async function place(
  context: Context,
  world: World,
  purpose: 'start' | 'resume' | 'move',
  now: Instant,
): Promise<Done> {
  const { job } = world
  const on = purpose === 'move' ? (world.move?.on ?? null) : job.state.is === 'resuming' ? job.state.on : null
  const choice = await chooseFor(context, world, purpose, on)
  const offer = choice.fitting[0]
  if (!offer) return nowhere(context, world, purpose, choice.passedOver, now)

  const quoted = await requote(context, offer)
  if (quoted !== null) return tried(context, job, { offer: offer.id, why: quoted })

  // what a move's target begins from is not saved yet
  const attempt = intend(context, job, offer, purpose === 'resume' ? (job.base?.slot ?? null) : null, now)
  const changes: Change[] = [
    updateJob(job, { lastToken: attempt.token, due: never, ...stateWith(job, attempt, purpose, now) }),
    { do: 'insert', table: 'attempts', row: attempt },
    commitMoney(attempt, attempt.committed.micros, true),
  ]
  if (purpose === 'move' && world.move) changes.push(updateMove(world.move, { target: attempt.token }))
  const at = context.clock.now()
  const because = job.spec.on?.pinned
    ? why('place.pinned', { offer: offer.id })
    : why('place.chosen', { offer: offer.id, price: priceInWords(offer), fitting: choice.fitting.length })
  const happened: NewEvent[] =
    purpose === 'move'
      ? [event(job, 'move.step', 'portal', because, { step: 'target', to: offer.id })]
      : [
          event(job, purpose === 'start' ? 'starting' : 'resuming', 'portal', because, {
            offer: offer.id,
            attempt: attempt.token,
          }),
        ]
  const applied = await context.store.apply({ changes, events: happened.map((one) => ({ ...one, at })) })
  if (applied.is === 'refused' && applied.why === 'cap')
    return tried(context, job, { offer: offer.id, why: `the cap of ${offer.connection} would be passed` })
  if (applied.is === 'applied') context.happened(applied.seq)
  return 'again'
}

export const priceInWords = ({ price }: Offer): string =>
  `${(price.micros / 1e6).toFixed(price.micros % 10_000 === 0 ? 2 : 4)} ${price.currency}`

/** All offers weighed for a job. A person's move without a pattern goes to a cheaper place only; one with a pattern anywhere within it. */
export async function chooseFor(
  context: Context,
  world: World,
  purpose: 'start' | 'resume' | 'move',
  on: string | null,
) {
  const { job } = world
  const pattern = on ?? job.spec.on?.pattern ?? null
  const { offers, failed } = await market(context, job.spec.needs, pattern)
  const choice = choose({
    spec: job.spec,
    on,
    offers,
    connections: [...context.providers.keys()],
    tried: job.passedOver,
    left: await leftOnOwned(context, offers),
  })
  const unreachable = failed.map(({ connection, problem }) => ({ offer: connection, why: problem }))
  const passedOver = [...choice.passedOver, ...unreachable]
  if (purpose !== 'move') return { fitting: choice.fitting, passedOver }

  const here = currentOf(world)?.offer
  const fitting: Offer[] = []
  for (const offer of choice.fitting) {
    if (offer.id === here?.id) passedOver.push({ offer: offer.id, why: 'it is there already' })
    else if (on === null && here && offer.price.micros >= here.price.micros)
      passedOver.push({ offer: offer.id, why: `not cheaper: ${priceInWords(offer)} an hour` })
    else fitting.push(offer)
  }
  return { fitting, passedOver }
}

/** J-RUN-6: price and capacity are read afresh before a machine is rented. @returns what is against it now */
async function requote(context: Context, offer: Offer): Promise<string | null> {
  try {
    const { price } = (await context.providers.get(offer.connection)?.quote(offer)) ?? { price: offer.price }
    return price.micros > offer.price.micros ? `its price rose to ${priceInWords({ ...offer, price })}` : null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function intend(context: Context, job: JobRecord, offer: Offer, from: number | null, now: Instant): AttemptRecord {
  const token = job.lastToken + 1
  const id = `${job.id}.${token}`
  const { checkin } = job.spec.settings
  return {
    id,
    jobId: job.id,
    token,
    version: 1,
    state: 'intended',
    offer,
    needs: job.spec.needs,
    machineId: null,
    agentId: isOwned(context, offer.connection) ? offer.connection : id,
    intendedAt: now,
    startedAt: null,
    boundAt: null,
    from,
    ranFrom: null,
    ranUntil: null,
    endingAt: null,
    goneAt: null,
    lease: null,
    committed: worstCase({ offer, startedAt: null, intendedAt: now }, now, leaseReckoned(checkin, job.spec.settings)),
    spent: null,
    logLimit: null,
    exit: null,
  }
}

function stateWith(
  job: JobRecord,
  attempt: AttemptRecord,
  purpose: 'start' | 'resume' | 'move',
  now: Instant,
): Partial<JobRecord> {
  if (purpose === 'start') return { state: { is: 'starting', since: now, token: attempt.token } }
  if (purpose === 'resume' && job.state.is === 'resuming') return { state: { ...job.state, token: attempt.token } }
  return {}
}

/** An offer that was not to be had: remembered for this placement, and the next one is tried. */
export async function tried(context: Context, job: JobRecord, offer: PassedOver): Promise<Done> {
  await commit(
    context,
    job,
    [updateJob(job, { passedOver: passedOverAnd(job, offer) })],
    [event(job, 'warned', 'portal', why('place.refused', { offer: offer.offer, kind: 'not taken', error: offer.why }))],
  )
  return 'again'
}

async function nowhere(
  context: Context,
  world: World,
  purpose: 'start' | 'resume' | 'move',
  passedOver: readonly PassedOver[],
  now: Instant,
): Promise<Done> {
  const { job } = world
  const refusals = refusalsInWords(passedOver)
  if (purpose === 'move' && world.move)
    return abortMove(context, world, world.move, why('move.no_offer', { refusals }), [])
  const { retryQueued } = job.spec.settings
  if (purpose === 'start') {
    const reason = why('place.none', { offers: passedOver.length, refusals })
    const since = job.state.is === 'queued' ? job.state.since : now
    const state: JobState = { is: 'queued', since, why: reason }
    const told =
      job.state.is === 'queued' && job.state.why.code === reason.code && job.state.why.facts.refusals === refusals
    await commit(
      context,
      job,
      [updateJob(job, { state, passedOver: [], due: now + retryQueued })],
      told ? [] : [event(job, 'queued', 'portal', reason)],
    )
    return { later: now + retryQueued }
  }
  if (job.state.is !== 'resuming') return 'again'
  const reason = why('resume.no_offer', { refusals })
  if (job.state.waitUntil !== null && now < job.state.waitUntil) {
    const due = Math.min(job.state.waitUntil, now + retryQueued)
    await commit(
      context,
      job,
      [updateJob(job, { passedOver: [], warnings: [reason], due })],
      job.warnings.some(({ facts }) => facts.refusals === refusals) ? [] : [event(job, 'warned', 'portal', reason)],
    )
    return { later: due }
  }
  await commit(context, job, fallBack(job, now, { passedOver: [], warnings: [reason] }), [
    event(job, 'suspended', job.state.by, reason),
  ])
  return 'again'
}

/** A resume that came to nothing: the job is what it was, its checkpoint kept for at least another day (J-RES-1). */
export function fallBack(job: JobRecord, now: Instant, more: Partial<JobRecord>): Change[] {
  if (job.state.is !== 'resuming') return []
  const { was } = job.state
  const atLeast = now + day
  const state: JobState =
    job.wish?.to === 'stop'
      ? {
          is: 'stopped',
          since: now,
          by: job.wish.by,
          why: job.wish.why,
          resumableUntil: now + job.spec.settings.ttlKeep,
        }
      : was.is === 'suspended'
        ? { ...was, expiresAt: Math.max(was.expiresAt, atLeast) }
        : { ...was, resumableUntil: was.resumableUntil === null ? null : Math.max(was.resumableUntil, atLeast) }
  return [updateJob(job, { state, wish: null, due: now, ...more })]
}

/** Whether an error of a provider means: not this offer, take the next. Everything else may have had an effect. */
export const isRefusal = (error: unknown): error is ProviderError =>
  error instanceof ProviderError &&
  ['capacity', 'quota', 'price_changed', 'not_found', 'unauthorized', 'terminal'].includes(error.kind)
