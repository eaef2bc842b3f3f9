import { moneyView } from '../../contract/money.ts'
import type {
  CheckpointsView,
  DecisionView,
  EventView,
  ExitView,
  JobView,
  OfferView,
  WhyView,
} from '../../contract/schemas.ts'
import type { DecisionRecord, EventRecord } from '../../core/decisions.ts'
import type { AttemptRecord, Exit, JobRecord, Offer, RefusedValue } from '../../core/jobs/model.ts'
import { canBeTaken } from '../../core/jobs/placement.ts'
import { ranFor, spent } from '../../core/jobs/spending.ts'
import { attemptOf, currentOf, type World } from '../../core/jobs/world.ts'
import { durationInWords, sentence, why, type Why } from '../../core/reasons.ts'
import type { Instant } from '../../core/time/index.ts'
import { byName } from '../engine/context.ts'

export const whyView = (reason: Why): WhyView => ({
  code: reason.code,
  sentence: sentence(reason),
  facts: reason.facts,
})

const exitView = (exit: Exit): ExitView =>
  'code' in exit ? { code: exit.code, signal: null, at: exit.at } : { code: null, signal: exit.signal, at: exit.at }

/** Why a job is in its state, where there is more to say than the state itself. */
export function whyOf({ job, move }: Pick<World, 'job' | 'move'>): Why | null {
  const { state } = job
  if ('why' in state) return state.why
  if (state.is === 'moving' || state.is === 'suspending') return move?.why ?? null
  if (state.is === 'running' && job.wish?.to === 'stop') return job.wish.why
  return null
}

/** The attempt that a job is shown with: the current one, or the one that is being started, or the last. */
export function shownAttempt({ job, attempts }: Pick<World, 'job' | 'attempts'>): AttemptRecord | null {
  const token = job.current ?? ('token' in job.state ? job.state.token : null)
  return attempts.find((one) => one.token === token) ?? attempts.findLast((one) => one.ranFrom !== null) ?? null
}

/** The values that the last try to carry the state named: of the last move, until another one went through. */
export const refusedOf = ({ job, lastMove }: Pick<World, 'job' | 'lastMove'>): readonly RefusedValue[] =>
  job.abortedMove !== null && lastMove?.id === job.abortedMove ? lastMove.refused : []

export function jobView(world: World, now: Instant): JobView {
  const { job, attempts, move } = world
  const { state, spec, base } = job
  const attempt = shownAttempt(world)
  const report = job.current === null ? null : world.seen(job.current).report
  const reason = whyOf(world)
  const target = attemptOf(world, move?.target ?? null)
  return {
    id: job.id,
    name: job.name,
    state: state.is,
    stateSince: state.since,
    why: reason && whyView(reason),
    command: [...spec.command],
    createdAt: job.createdAt,
    attempt: attempt?.token ?? null,
    offer: attempt?.offer.id ?? null,
    market: attempt?.offer.market ?? null,
    on: spec.on?.pattern ?? null,
    pinned: spec.on?.pinned ?? false,
    narrowed: spec.on !== null && !spec.on.pinned,
    progress: report && { done: report.progress.done, total: report.progress.total, turns: report.progress.turns },
    ran: ranFor(job, attempts, now),
    spent: moneyView(spent(attempts, now)),
    checkpoint: base && {
      slot: base.slot,
      savedAt: base.savedAt,
      bytes: base.bytes,
      verified: base.verifiedAt !== null,
      method: 'sdk',
    },
    unreachableSince: state.is === 'running' ? state.unreachableSince : null,
    exit: job.exit && exitView(job.exit),
    resumableUntil:
      state.is === 'suspended' ? state.expiresAt : 'resumableUntil' in state ? state.resumableUntil : null,
    expiresAt: state.is === 'suspended' ? state.expiresAt : null,
    wish: job.wish && {
      to: job.wish.to,
      by: byName(job.wish.by),
      at: job.wish.at,
      on: job.wish.to === 'move' ? job.wish.on : null,
    },
    move: move && { id: move.id, kind: move.kind, step: move.step, to: target?.offer.id ?? move.on },
    refused: [...refusedOf(world)],
    warnings: [...job.warnings, ...unguarded(world), ...undeclared(world)].map(whyView),
  }
}

/** J-RUN-7: true until the job shows a way of carrying its state. */
function unguarded(world: World): Why[] {
  const current = currentOf(world)
  if (!current || !canBeTaken(current.offer) || world.job.base !== null) return []
  return world.seen(current.token).report?.method === 'sdk' ? [] : [why('place.unguarded', { offer: current.offer.id })]
}

/** J-FILE-2: what changed in the working directory and is not declared would not come along. */
function undeclared({ job, seen }: World): Why[] {
  if (job.current === null) return []
  const { report } = seen(job.current)
  return report && report.undeclared.length > 0
    ? [why('outputs.undeclared', { files: report.undeclared.join(', ') })]
    : []
}

export const eventView = (event: EventRecord): EventView => ({
  seq: event.seq,
  at: event.at,
  subject: event.subject,
  kind: event.kind,
  by: event.by,
  why: event.why && whyView(event.why),
  facts: event.facts as EventView['facts'],
})

export const decisionView = ({
  id,
  policy,
  outcome,
  why: reason,
  firstAt,
  lastAt,
  count,
  lookAgainAt,
}: DecisionRecord): DecisionView => ({
  id,
  policy,
  outcome,
  why: whyView(reason),
  firstAt,
  lastAt,
  count,
  lookAgainAt,
})

export const offerView = (offer: Offer, against: string | null): OfferView => ({
  id: offer.id,
  connection: offer.connection,
  provider: offer.provider,
  region: offer.region,
  zone: offer.zone,
  type: offer.type,
  market: offer.market,
  price: moneyView(offer.price),
  notice: offer.notice,
  lifetime: offer.lifetime,
  cpus: offer.cpus,
  memoryBytes: offer.memoryBytes,
  gpus: offer.gpus,
  fits: against === null,
  leftOut:
    against === null ? null : whyView(why('place.refused', { offer: offer.id, kind: 'left out', error: against })),
})

/** J-WHY-2: why it is where it is, in one sentence. */
export function inOneSentence(world: World, now: Instant): string {
  const { job } = world
  const { state } = job
  const attempt = shownAttempt(world)
  const where = attempt ? ` at ${attempt.offer.id}` : ''
  const because = whyOf(world)
  const reason = because ? `: ${sentence(because)}` : ''
  const since = durationInWords(now - state.since)
  switch (state.is) {
    case 'running':
      if (state.unreachableSince !== null)
        return `${job.name} runs${where} as far as is known, unheard for ${durationInWords(now - state.unreachableSince)}: unreachable is not dead`
      return `${job.name} runs${where} since ${since}, attempt ${attempt?.token ?? 0}${job.spec.on?.pinned ? ', pinned there' : ''}${reason}`
    case 'suspended':
      return `${job.name} is suspended since ${since}${reason}; \`portal resume ${job.name}\` continues it for ${durationInWords(state.expiresAt - now)} more`
    case 'stopped':
    case 'failed': {
      const more =
        state.resumableUntil !== null && state.resumableUntil > now && job.base !== null
          ? `; \`portal resume ${job.name}\` continues it for ${durationInWords(state.resumableUntil - now)} more`
          : ''
      return `${job.name} ${state.is === 'failed' ? 'failed' : 'was stopped'} ${since} ago${reason}${more}`
    }
    case 'succeeded':
      return `${job.name} succeeded ${since} ago${where}`
    default:
      return `${job.name} is ${state.is}${state.is === 'moving' ? ` from ${attempt?.offer.id ?? '?'} to ${attemptOf(world, world.move?.target ?? null)?.offer.id ?? 'a place to be found'}` : where} since ${since}${reason}`
  }
}

export function checkpointRow(
  manifest: { slot: number; token: number; savedAt: Instant; bytes: number; storedBytes: number },
  job: JobRecord,
): CheckpointsView['checkpoints'][number] {
  const isBase = job.base?.slot === manifest.slot
  return {
    slot: manifest.slot,
    attempt: manifest.token,
    savedAt: manifest.savedAt,
    bytes: manifest.bytes,
    storedBytes: manifest.storedBytes,
    verifiedAt: isBase ? (job.base?.verifiedAt ?? null) : null,
    base: isBase,
    expiresAt: isBase && job.state.is === 'suspended' ? job.state.expiresAt : null,
  }
}
