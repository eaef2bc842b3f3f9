import type { Manifest } from '../../checkpoints/index.ts'
import type { Asker, AttemptRecord, Base, JobRecord, MoveRecord, RefusedValue } from '../../core/jobs/model.ts'
import { refusalsInWords } from '../../core/jobs/placement.ts'
import { attemptOf, currentOf, type World } from '../../core/jobs/world.ts'
import { why, type Why } from '../../core/reasons.ts'
import { minute, never, type Instant } from '../../core/time/index.ts'
import type { Change } from '../../store/port.ts'
import { collectBehind, commit, event, isPassing, storeRetry, updateJob, type Context, type Done } from './context.ts'
import { lastWords } from './last-words.ts'
import { chooseFor, priceInWords } from './place.ts'
import { isHere, runsAs, runsNowhere, toEnding, updateAttempt, updateMove } from './records.ts'

/** A store that cannot take a seal for this long keeps no job waiting: the move is given up, the source runs on. */
const sealTakes = 5 * minute

export interface Leaving {
  readonly kind: MoveRecord['kind']
  readonly by: Asker
  /** a pattern for where to; null: anywhere that is better */
  readonly on: string | null
  readonly because: Why
}

/** Begins a move or a suspension. A move without a place to go to is declined before anything is asked of the job. */
export async function beginMove(
  context: Context,
  world: World,
  { kind, by, on, because }: Leaving,
  now: Instant,
): Promise<Done> {
  const { job } = world
  const source = currentOf(world)
  if (!source) return 'again'
  if (kind === 'move') {
    const { fitting, passedOver } = await chooseFor(context, world, 'move', on)
    if (fitting.length === 0) {
      const refusals = refusalsInWords(passedOver)
      const reason = why('place.no_better', { offer: source.offer.id, price: priceInWords(source.offer), refusals })
      await commit(
        context,
        job,
        [updateJob(job, { wish: null })],
        [event(job, 'move.aborted', by, reason, { kind, refused: [] })],
      )
      return 'again'
    }
  }
  const id = `${job.id}-${context.random.letters(8)}`
  const move: Omit<MoveRecord, 'version'> = {
    id,
    jobId: job.id,
    kind,
    by,
    why: because,
    on,
    source: source.token,
    target: null,
    step: 'probe',
    slot: null,
    seal: null,
    outcome: null,
    abortWhy: null,
    refused: [],
    times: { probe: now },
  }
  await commit(
    context,
    job,
    [
      updateJob(job, {
        state: { is: kind === 'move' ? 'moving' : 'suspending', since: now, move: id },
        move: id,
        wish: job.wish?.to === 'stop' ? job.wish : null,
        passedOver: [],
      }),
      { do: 'insert', table: 'moves', row: move },
    ],
    [event(job, 'move.begun', by, because, { move: id, kind, from: source.offer.id })],
  )
  return 'again'
}

/** Records the next step, from which the next orders follow. */
export async function advance(
  context: Context,
  world: World,
  move: MoveRecord,
  to: MoveRecord['step'],
  slot: number | undefined,
  now: Instant,
): Promise<Done> {
  const { job } = world
  const target = attemptOf(world, move.target)
  const held = slot === undefined ? {} : { held: now }
  await commit(
    context,
    job,
    [
      // the slot is looked at when the move is over: given up, it is a checkpoint like any other, for the job to go on from
      updateJob(job, {}),
      updateMove(move, {
        step: to,
        times: { ...move.times, [to]: now, ...held },
        ...(slot === undefined ? {} : { slot }),
      }),
      // what the target is to restore is part of its row: its order follows from it
      ...(to === 'restore' && target && slot !== undefined ? [updateAttempt(target, { from: slot })] : []),
    ],
    [event(job, 'move.step', 'portal', null, { move: move.id, step: to, ...(slot === undefined ? {} : { slot }) })],
  )
  return 'again'
}

/** Decides that a move did not happen. The source runs on once this is durable, and the target goes. */
export async function abortMove(
  context: Context,
  world: World,
  move: MoveRecord,
  because: Why,
  refused: readonly RefusedValue[],
): Promise<Done> {
  const { job } = world
  const closed = await behindSeal(context, job, move)
  const now = context.clock.now()
  if (closed === 'later') return { later: now + storeRetry }
  const target = attemptOf(world, move.target)
  await commit(
    context,
    job,
    [
      updateJob(job, {
        // it ran on all the while
        state: { is: 'running', since: currentOf(world)?.ranFrom ?? now, unreachableSince: null },
        move: null,
        abortedMove: move.id,
        passedOver: [],
        ...closed,
      }),
      aborted(move, because, refused, now),
      ...(target && isHere(target) ? [toEnding(target, now)] : []),
    ],
    [event(job, 'move.aborted', move.by, because, { move: move.id, kind: move.kind, step: move.step, refused })],
  )
  return 'again'
}

/**
 * Where the chain goes on after a move that is given up at its last step: it may have been sealed already, and whoever writes
 * next would be fenced by that seal. The same seal once more tells (hard-parts 4).
 */
export async function behindSeal(
  context: Context,
  job: JobRecord,
  move: MoveRecord | null,
): Promise<Partial<JobRecord> | 'later'> {
  if (move?.step !== 'seal' || move.slot === null) return {}
  try {
    const { sealedSlot, adopted } = await context.chains.seal(job.id, move.slot, move.id)
    try {
      const newest = adopted.at(-1) ?? (await context.chains.verify(job.id, move.slot))
      return { lastSlot: sealedSlot, base: baseFrom(newest, context.clock.now()) }
    } catch (error) {
      if (isPassing(error)) throw error
      context.log.warn(
        { job: job.id, error: String(error) },
        'the checkpoint of a move that is given up cannot be used',
      )
      return { lastSlot: sealedSlot }
    }
  } catch (error) {
    context.log.warn({ job: job.id, error: String(error) }, 'the chain could not be read; it is tried again')
    // a store that is away for long holds no job for ever: where it was sealed after all, the next save finds out
    return context.clock.now() - (move.times.seal ?? 0) < 2 * sealTakes ? 'later' : {}
  }
}

export const aborted = (move: MoveRecord, because: Why, refused: readonly RefusedValue[], now: Instant): Change =>
  updateMove(move, {
    step: 'aborted',
    outcome: 'aborted',
    abortWhy: because,
    refused,
    times: { ...move.times, aborted: now },
  })

export const baseFrom = (manifest: Manifest, verifiedAt: Instant | null): Base => ({
  slot: manifest.slot,
  token: manifest.token,
  savedAt: manifest.savedAt,
  bytes: manifest.bytes,
  storedBytes: manifest.storedBytes,
  verifiedAt,
})

/**
 * Closes the chain behind the slot that was saved, and writes the outcome. After this nobody but the new attempt can add to
 * the chain, and only then is the base known (hard-parts 4).
 */
export async function sealAndCommit(context: Context, world: World, move: MoveRecord): Promise<Done> {
  const source = attemptOf(world, move.source)
  if (!source || move.slot === null)
    return abortMove(context, world, move, why('move.source_lost', { offer: 'the source' }), [])
  let sealed: number
  let base: Base
  try {
    const seal = await context.chains.seal(world.job.id, move.slot, move.id)
    sealed = seal.sealedSlot
    const newer = seal.adopted.findLast(({ slot }) => slot > (move.slot as number))
    if (newer) return await abortMove(context, world, move, why('move.superseded'), [])
    // a suspension has no target that verified it: every hash is checked before the job may go (J-SAFE-3)
    const manifest = await context.chains.verify(world.job.id, move.slot)
    base = baseFrom(manifest, context.clock.now())
    // whatever of the source's log did not come yet is in before its machine may go
    await lastWords(context, world.job, source, manifest)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const waited = context.clock.now() - (move.times.seal ?? context.clock.now())
    if (isPassing(error) && waited < sealTakes) {
      context.log.warn({ job: world.job.id, error: message }, 'the chain could not be sealed; it is tried again')
      return { later: context.clock.now() + storeRetry }
    }
    return abortMove(context, world, move, why('move.save_failed', { error: message }), [])
  }
  return move.kind === 'move'
    ? commitMove(context, world, move, source, base, sealed)
    : commitSuspension(context, world, move, base, sealed)
}

async function commitMove(
  context: Context,
  world: World,
  move: MoveRecord,
  source: AttemptRecord,
  base: Base,
  seal: number,
): Promise<Done> {
  const now = context.clock.now()
  const { job } = world
  const target = attemptOf(world, move.target)
  if (!target || target.state !== 'bound')
    return abortMove(
      context,
      world,
      move,
      why('move.target_lost', { offer: move.on ?? 'the target', error: 'it is not bound' }),
      [],
    )
  const logLimit = world.seen(source.token).report?.held?.logOffset ?? null
  const left = leftBehind(world, source.token)
  const applied = await commit(
    context,
    job,
    [
      updateJob(job, {
        ...runsAs(target, now),
        move: null,
        abortedMove: null,
        base,
        lastSlot: seal,
        warnings: left,
      }),
      updateMove(move, { step: 'committed', outcome: 'committed', seal, times: { ...move.times, committed: now } }),
      updateAttempt(target, { ranFrom: now }),
      toEnding(source, now, { logLimit }),
    ],
    [
      ...left.map((one) => event(job, 'warned', 'portal', one)),
      event(job, 'move.committed', move.by, move.why, {
        move: move.id,
        kind: move.kind,
        from: source.offer.id,
        to: target.offer.id,
        slot: base.slot,
        bytes: base.bytes,
        times: { ...move.times, committed: now },
      }),
    ],
  )
  if (applied !== null && logLimit !== null) context.logs.cut(source.id, logLimit)
  if (applied !== null) collectBehind(context, job.id, base.slot)
  return 'again'
}

async function commitSuspension(
  context: Context,
  world: World,
  move: MoveRecord,
  base: Base,
  seal: number,
): Promise<Done> {
  const now = context.clock.now()
  await commit(
    context,
    world.job,
    [
      updateJob(world.job, { base, lastSlot: seal }),
      updateMove(move, { step: 'committed', outcome: 'committed', seal, times: { ...move.times, committed: now } }),
    ],
    [
      event(world.job, 'move.committed', move.by, move.why, {
        move: move.id,
        kind: move.kind,
        slot: base.slot,
        bytes: base.bytes,
        times: { ...move.times, committed: now },
      }),
    ],
  )
  return 'again'
}

/** The source of a committed suspension does not run any more: the job is in safe keeping. */
export async function confirmSuspended(
  context: Context,
  world: World,
  move: MoveRecord,
  attempt: AttemptRecord,
): Promise<Done> {
  const now = context.clock.now()
  const { job } = world
  const expiresAt = now + job.spec.settings.checkpointKeep
  const logLimit = world.seen(attempt.token).report?.held?.logOffset ?? null
  const left = leftBehind(world, attempt.token)
  const applied = await commit(
    context,
    job,
    [
      updateJob(job, {
        state: { is: 'suspended', since: now, by: move.by, why: move.why, expiresAt },
        ...runsNowhere,
        wish: job.wish?.to === 'stop' ? job.wish : null,
        due: Math.min(expiresAt, ttlDue(job)),
        warnings: left,
      }),
      updateMove(move, { times: { ...move.times, released: now } }),
      toEnding(attempt, now, { logLimit }),
    ],
    [
      ...left.map((one) => event(job, 'warned', 'portal', one)),
      event(job, 'suspended', move.by, move.why, {
        move: move.id,
        slot: move.slot,
        offer: attempt.offer.id,
        expiresAt,
      }),
    ],
  )
  if (applied !== null && logLimit !== null) context.logs.cut(attempt.id, logLimit)
  if (applied !== null && job.base !== null) collectBehind(context, job.id, job.base.slot)
  return 'again'
}

/** J-FILE-2: what the job wrote and did not declare goes with its machine; it is named before. */
const leftBehind = (world: World, token: number): readonly Why[] => {
  const files = world.seen(token).report?.undeclared ?? []
  return files.length === 0 ? [] : [why('outputs.undeclared', { files: files.join(', ') })]
}

export const ttlDue = (job: JobRecord): Instant =>
  job.spec.settings.ttl === 'off' ? never : job.ttlFrom + job.spec.settings.ttl
