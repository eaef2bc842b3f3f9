import { portalError } from '../../contract/errors.ts'
import type { PracticeAct, PracticeView } from '../../contract/practice.ts'
import type { OffersQuery, OffersView } from '../../contract/schemas.ts'
import { moneyOf, moneyView } from '../../contract/money.ts'
import { isEnded, type Needs } from '../../core/jobs/model.ts'
import { choose } from '../../core/jobs/placement.ts'
import { builtIn } from '../../core/jobs/settings.ts'
import { currentOf } from '../../core/jobs/world.ts'
import { nearest } from '../../core/text.ts'
import { isPractice, type Practice } from '../../providers/practice/index.ts'
import { ProviderError } from '../../providers/port.ts'
import type { Context } from '../engine/context.ts'
import type { Engine } from '../engine/engine.ts'
import { market } from '../engine/offers.ts'
import type { ControlApi } from '../http/api.ts'
import { doctor } from './doctor.ts'
import { followEvents, followLog, readLog, type Happenings } from './follow.ts'
import { Jobs } from './jobs.ts'
import { outputsOf } from './outputs.ts'
import { checkpointRow, decisionView, eventView, inOneSentence, offerView, refusedOf, whyOf, whyView } from './views.ts'

export interface ApiOptions {
  readonly context: Context
  readonly engine: Engine
  readonly happenings: Happenings
  readonly home: string
  readonly version: string
  readonly startedAt: number
  readonly pid: number
  /** stops the control plane, after the answer was sent */
  readonly shutdown: () => void
}

/** How far back an explanation goes. */
const decisionsShown = 500
const eventsShown = 2000

/** The contract's routes, answered from the store, the loop and the providers. */
export function openApi(options: ApiOptions): ControlApi {
  const { context, engine, happenings } = options
  const { store, clock, logs } = context
  const jobs = new Jobs(context, engine)

  const worldOf = async (ref: string) => {
    const job = await jobs.find(ref)
    const world = await engine.world(job.id)
    if (!world) throw portalError('job_not_found', { ref, nearest: 'none' })
    return world
  }

  return {
    health: () => ({
      ok: true,
      version: options.version,
      installation: context.installation,
      pid: options.pid,
      startedAt: options.startedAt,
    }),

    createJob: (request, by) => jobs.create(request, by),
    job: (ref) => jobs.view(ref),
    async jobs({ all, limit }) {
      const found = await store.jobs({ ...(all ? {} : { ended: false }), limit: limit + 1 })
      const shown = await Promise.all(found.slice(0, limit).map((job) => jobs.viewOf(job)))
      return { jobs: shown, more: found.length > limit }
    },

    async explain(ref) {
      const world = await worldOf(ref)
      const now = clock.now()
      const live = new Map(engine.checks.current(world.job.id).map((one) => [one.id, one]))
      const kept = await store.decisionsOf(world.job.id, { limit: decisionsShown })
      const decisions = kept.map((one) => decisionView(live.get(one.id) ?? one))
      const current = new Map<string, (typeof decisions)[number]>()
      for (const one of decisions) if (!current.has(one.policy)) current.set(one.policy, one)
      const looks = [...current.values()].filter(({ lookAgainAt }) => lookAgainAt !== null && lookAgainAt > now)
      const at = Math.min(...looks.map(({ lookAgainAt }) => lookAgainAt as number))
      const reason = whyOf(world)
      return {
        job: world.job.id,
        name: world.job.name,
        state: world.job.state.is,
        sentence: inOneSentence(world, now),
        why: reason && whyView(reason),
        decisions,
        events: (await store.events(0, { subject: world.job.id, limit: eventsShown })).map(eventView),
        next:
          looks.length === 0 || isEnded(world.job.state)
            ? null
            : { at, policies: looks.filter(({ lookAgainAt }) => lookAgainAt === at).map(({ policy }) => policy) },
      }
    },

    async checkpoints(ref) {
      const world = await worldOf(ref)
      const { job } = world
      const current = currentOf(world)
      const report = current && world.seen(current.token).report
      const manifests = await context.chains.list(job.id)
      const { lastMove } = world
      return {
        job: job.id,
        method: manifests.at(-1)?.method ?? (report && report.method !== 'unknown' ? report.method : null),
        checkpoints: manifests.toReversed().map((manifest) => checkpointRow(manifest, job)),
        refused: [...refusedOf(world)],
        probedAt: lastMove?.times.aborted ?? lastMove?.times.committed ?? null,
      }
    },

    suspend: (ref, by) => jobs.suspend(ref, by),
    resume: (ref, request, by) => jobs.resume(ref, request, by),
    move: (ref, request, by) => jobs.move(ref, request, by),
    stop: (ref, request, by) => jobs.stop(ref, request, by),

    async *readLog(ref, from) {
      for await (const { bytes } of readLog(engine, logs, (await jobs.find(ref)).id, from)) yield bytes
    },
    async *followLog(ref, from, signal) {
      yield* followLog(engine, logs, happenings, (await jobs.find(ref)).id, from, signal)
    },
    events: async (after, subject, limit) =>
      (await store.events(after, { ...(subject !== null && { subject }), limit })).map(eventView),
    async *followEvents(after, subject, signal) {
      yield* followEvents(store, happenings, after ?? (await lastSeq(context)), subject, signal)
    },

    outputsOf: async (ref) => outputsOf(context, await worldOf(ref)),

    offers: (query) => offers(context, query),
    async connections() {
      const alive = await store.attemptsAlive()
      return {
        connections: (await store.connections()).map(({ id, provider, committedMicros, capMicros, currency }) => ({
          id,
          provider,
          committed: moneyView({ micros: Math.max(0, committedMicros), currency }),
          cap: capMicros === null ? null : moneyView({ micros: capMicros, currency }),
          machines: alive.filter(({ offer, state }) => offer.connection === id && state !== 'intended').length,
          problem: context.providers.has(id) ? null : 'its provider could not be opened',
        })),
      }
    },
    doctor: () => doctor(options),

    async shutdown() {
      const alive = await store.attemptsAlive()
      const running = await Promise.all(
        alive
          .filter(({ state }) => state === 'bound')
          .map(async (attempt) => {
            const world = await engine.world(attempt.jobId)
            return world && { name: world.job.name, hardStopAt: world.seen(attempt.token).leaseEnds }
          }),
      )
      const told = running.filter((one) => one !== null)
      options.shutdown()
      return {
        jobs: told,
        sentence:
          told.length === 0
            ? 'no job runs'
            : `${told.length} ${told.length === 1 ? 'job runs' : 'jobs run'} on; without a control plane each is saved and ended when its lease runs out`,
      }
    },

    practice: async () => practiceView(practiceOf(context)),
    playPractice: async (act) => {
      const practice = practiceOf(context)
      await play(context, practice, act)
      engine.wakeWaiting()
      return practiceView(practice)
    },
  }
}

/** The seq of the newest event: what comes is behind it. */
async function lastSeq({ store }: Context): Promise<number> {
  const nothing = await store.apply({ changes: [], events: [] })
  return nothing.is === 'applied' ? nothing.seq : 0
}

async function offers(context: Context, query: OffersQuery): Promise<OffersView> {
  const needs: Needs = {
    cpus: query.cpus ?? 0,
    memoryBytes: query.memoryBytes ?? 0,
    diskBytes: query.diskBytes ?? 0,
    gpus: query.gpuModel === undefined ? null : { model: query.gpuModel, count: query.gpuCount ?? 1 },
    image: query.image ?? null,
  }
  const pattern = query.on ?? null
  // looking is free: without a pattern the practice cloud is listed too, though nothing is placed there unasked
  const seen = pattern === null ? await everything(context, needs) : await market(context, needs, pattern)
  const connections = [...context.providers.keys()]
  const { fitting, passedOver } = choose({
    spec: { needs, on: pattern === null ? null : { pattern, pinned: false }, settings: builtIn },
    on: null,
    offers: seen.offers,
    connections,
    tried: [],
    left: {},
  })
  const others = seen.offers.flatMap((offer) => {
    const against = passedOver.find((one) => one.offer === offer.id)
    return against && !(pattern !== null && against.why === `not within ${pattern}`)
      ? [offerView(offer, against.why)]
      : []
  })
  return {
    at: context.clock.now(),
    offers: [...fitting.map((offer) => offerView(offer, null)), ...others],
    failed: [...seen.failed],
  }
}

async function everything(context: Context, needs: Needs) {
  const all = await Promise.all([...context.providers.keys()].map((connection) => market(context, needs, connection)))
  return { offers: all.flatMap((one) => one.offers), failed: all.flatMap((one) => one.failed) }
}

function practiceOf(context: Context): Practice {
  const practice = [...context.providers.values()].find(isPractice)
  if (!practice) throw portalError('practice_absent', {})
  return practice
}

async function practiceView(practice: Practice): Promise<PracticeView> {
  const overview = await practice.market()
  return {
    market: overview.rows.map((row) => ({
      offer: `practice/${row.pool}`,
      price: moneyView(row.price),
      capacity: row.capacity,
      used: row.used,
      notice: row.notice,
      lifetime: row.lifetime,
    })),
    quotas: overview.quotas.map(({ region, cpus, used }) => ({ region, cpus, used })),
    machines: overview.machines.map((machine) => ({
      id: machine.id,
      offer: `practice/${machine.pool}`,
      state: machine.state,
      because: machine.because,
      attempt: machine.rowId,
      startedAt: machine.startedAt,
      endedAt: machine.endedAt,
      noticeEndsAt: machine.notice?.endsAt ?? null,
    })),
  }
}

/** What people type for a machine may be the name of the job on it. */
async function machineTarget(context: Context, typed: string): Promise<string> {
  const job = await context.store.jobByName(typed)
  // a machine that only boots can be taken as well
  return job === null || job.lastToken === 0 ? typed : `${job.id}.${job.current ?? job.lastToken}`
}

async function play(context: Context, practice: Practice, act: PracticeAct): Promise<void> {
  try {
    switch (act.do) {
      case 'notice':
        return void (await practice.notice(await machineTarget(context, act.machine), act.length ?? null))
      case 'withdraw':
        return void (await practice.withdrawNotice(await machineTarget(context, act.machine)))
      case 'reclaim':
        return void (await practice.reclaim(await machineTarget(context, act.machine)))
      case 'price':
        if (act.amount === null) return void (await practice.clearPrice(act.offer))
        return void (await practice.setPrice(
          act.offer,
          moneyOf({ amount: act.amount, currency: 'USD' }),
          act.ttl ?? null,
        ))
      case 'capacity':
        return void (await practice.setCapacity(act.offer, act.machines))
      case 'quota':
        return void (await practice.setQuota(act.region, act.cpus))
      case 'lifetime':
        return void (await practice.setLifetime(act.offer, act.lifetime))
      case 'notice-length':
        return void (await practice.setNoticeLength(act.offer, act.length))
      case 'reset':
        return void (await practice.reset())
    }
  } catch (error) {
    if (!(error instanceof ProviderError) || error.kind !== 'not_found') throw error
    const overview = await practice.market()
    if ('machine' in act) {
      const known = overview.machines.filter(({ state }) => state !== 'ended').map(({ rowId }) => rowId)
      throw portalError('machine_not_found', { machine: act.machine, known: known.length > 0 ? known : 'none runs' })
    }
    const offer = 'offer' in act ? act.offer : 'region' in act ? act.region : ''
    const pools = overview.rows.map(({ pool }) => `practice/${pool}`)
    throw portalError('offer_not_found', { offer, nearest: nearest(offer, pools) ?? pools.slice(0, 3).join(', ') })
  }
}
