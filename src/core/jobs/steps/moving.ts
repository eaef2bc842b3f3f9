import { second, type Duration, type Instant } from '../../time/index.ts'
import type { AttemptRecord, MoveRecord } from '../model.ts'
import { attemptOf, leaseOver, provenGone, type Seen, type World } from '../world.ts'
import { exited, meanwhile, whileUnheard, wasKilled } from './running.ts'
import { bringUp, reasonDue, restoreFailure } from './starting.ts'
import { abort, wait, type Step } from './step.ts'

/** A probe only looks: it waits as long as a safe point may take, and a little for the look itself. */
const probeTakes: Duration = 60 * second
/** The answer to a promise is one round trip; a source that cannot give it is not waited for. */
const promiseTakes: Duration = 30 * second

/**
 * A move or a suspension, step by step. Until its outcome is written the job is where it was: every failure aborts, and the
 * source runs on. Aborting is as much a decision as committing: nothing that depends on it is sent before it is durable.
 */
export function moving(world: World, now: Instant): Step {
  const { move } = world
  const source = attemptOf(world, move?.source ?? null)
  if (!move || !source) return wait(Infinity)
  return move.outcome === 'committed' ? confirming(world, move, source, now) : preparing(world, move, source, now)
}

/** A committed suspension: nothing but the proof that its source does not run any more is waited for. */
function confirming(world: World, move: MoveRecord, source: AttemptRecord, now: Instant): Step {
  const seen = world.seen(source.token)
  const { exit } = seen.report ?? {}
  if (exit) {
    // an end from before the hold wins: the job had ended (hard-parts: "an exit status before that wins")
    if (exit.how === 'exited' && !wasKilled(exit)) return exited(world, source, exit, now)
    return { do: 'confirm-suspended', move, attempt: source }
  }
  if (provenGone(seen) !== null || (!seen.connected && leaseOver(seen, now)))
    return { do: 'confirm-suspended', move, attempt: source }
  return seen.connected ? wait(Infinity) : whileUnheard(source, seen, now)
}

function preparing(world: World, move: MoveRecord, source: AttemptRecord, now: Instant): Step {
  const seen = world.seen(source.token)
  const { report } = seen
  const { wish, spec } = world.job
  if (report?.exit) return exited(world, source, report.exit, now)
  if (wish?.to === 'stop') return abort(move, 'move.stopped')
  const gone = provenGone(seen)
  if (gone !== null || (!seen.connected && leaseOver(seen, now)))
    return abort(move, 'move.source_lost', { offer: source.offer.id })
  if (report?.voided.includes(move.id)) return abort(move, 'move.voided', { waited_ms: spec.settings.moveHold })

  const refused = refusal(move, seen)
  if (refused) return refused

  const target = attemptOf(world, move.target)
  if (target && world.seen(target.token).machine?.notice)
    return abort(move, 'move.notice_at_target', { offer: target.offer.id })
  // a notice at the source makes a suspension of it: the save under way is not lost, its slot is the agent's next hold
  if (move.kind === 'move' && seen.machine?.notice)
    return abort(move, 'spot.notice', {
      offer: source.offer.id,
      left_ms: Math.max(0, seen.machine.notice.endsAt - now),
    })

  return meanwhile(nextOf(world, move, seen, target, now), [source, target], world, now)
}

function nextOf(world: World, move: MoveRecord, seen: Seen, target: AttemptRecord | null, now: Instant): Step {
  const { report } = seen
  const { spec } = world.job
  switch (move.step) {
    case 'probe':
      return probing(move, seen, now, spec.settings.safePointWait)
    case 'target':
      return bringingUp(world, move, target, now)
    case 'hold':
      return holding(move, seen, now, spec.settings.safePointWait)
    case 'restore':
      return restoringAt(world, move, target, now)
    case 'promise': {
      if (report?.promised === move.id) return { do: 'advance', move, to: 'seal' }
      const until = begun(move, 'promise', now) + promiseTakes
      return now >= until ? abort(move, 'move.timeout', { step: 'promise', waited_ms: promiseTakes }) : wait(until)
    }
    case 'seal':
      return { do: 'seal-and-commit', move }
    default:
      return wait(Infinity)
  }
}

/**
 * What the source said of this very move: that its state cannot be carried, or that the save failed (J-STRICT-1). The values are
 * named, the move is given up, and the job runs on where it is.
 */
function refusal(move: MoveRecord, { report }: Seen): Step | null {
  const probe = report?.probe?.move === move.id ? report.probe : null
  const save = report?.saveRefused?.move === move.id ? report.saveRefused : null
  const said = save ?? probe
  if (!said) return null
  if (said.refused.length > 0)
    return abort(move, 'move.refused', { count: said.refused.length, first: said.refused[0]?.path ?? '' }, said.refused)
  if (save) return abort(move, 'move.save_failed', { error: save.why })
  return probe && probe.why !== null ? abort(move, 'move.no_way', { error: probe.why }) : null
}

function probing(move: MoveRecord, { report }: Seen, now: Instant, safePointWait: Duration): Step {
  const next = move.kind === 'move' ? 'target' : 'hold'
  // a source that is held already (a notice) cannot be asked, and need not be: its save went through
  const held = report?.held != null && (report.phase === 'held' || report.phase === 'promised')
  if (report?.probe?.move === move.id || held) return { do: 'advance', move, to: next }
  const until = begun(move, 'probe', now) + safePointWait + probeTakes
  return now >= until ? abort(move, 'move.safe_point', { waited_ms: safePointWait }) : wait(until)
}

function bringingUp(world: World, move: MoveRecord, target: AttemptRecord | null, now: Instant): Step {
  if (!target || target.state === 'ending' || target.state === 'gone') return { do: 'place', for: 'move' }
  return bringUp(target, world, now) ?? { do: 'advance', move, to: 'hold' }
}

function holding(move: MoveRecord, { report }: Seen, now: Instant, safePointWait: Duration): Step {
  if (report?.held?.move === move.id)
    return { do: 'advance', move, to: move.kind === 'move' ? 'restore' : 'promise', slot: report.held.slot }
  // a save takes what it takes; only the safe point has a limit, which the agent keeps itself. This is the backstop.
  const until = begun(move, 'hold', now) + 2 * safePointWait + probeTakes
  return now >= until
    ? abort(move, 'move.timeout', { step: 'hold', waited_ms: until - begun(move, 'hold', now) })
    : wait(until)
}

function restoringAt(world: World, move: MoveRecord, target: AttemptRecord | null, now: Instant): Step {
  if (!target) return abort(move, 'move.target_lost', { offer: move.on ?? 'the target', error: 'its row is gone' })
  const seen = world.seen(target.token)
  const failed = restoreFailure(seen, now)
  if (failed !== null)
    return abort(
      move,
      'move.restore_failed',
      { offer: target.offer.id, error: failed },
      seen.report?.restoreFailed?.refused ?? [],
    )
  if (seen.report?.phase === 'prepared') return { do: 'advance', move, to: 'promise' }
  const { restoreTimeout } = world.job.spec.settings
  const until = begun(move, 'restore', now) + restoreTimeout
  return now >= until
    ? abort(move, 'move.timeout', { step: 'restore', waited_ms: restoreTimeout })
    : wait(Math.min(until, reasonDue(seen, now)))
}

const begun = (move: MoveRecord, step: MoveRecord['step'], now: Instant): Instant => move.times[step] ?? now
