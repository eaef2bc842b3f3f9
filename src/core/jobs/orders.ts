import type { JobStart, Want } from './agent.ts'
import type { AttemptRecord, JobRecord, MoveRecord } from './model.ts'

/**
 * What an attempt should be doing, derived from what is remembered and nothing else: so nothing can be ordered before it was
 * recorded, and the same records always give the same order.
 *
 * @param move the job's open move, or its committed suspension until that is confirmed
 * @param key the job's own key, base64
 * @returns null: nothing yet (its machine has not checked in)
 */
export function orderFor(job: JobRecord, attempt: AttemptRecord, move: MoveRecord | null, key: string): Want | null {
  switch (attempt.state) {
    case 'intended':
    case 'started':
    case 'ready':
      return null
    case 'ending':
    case 'gone':
      return { do: 'end' }
    case 'bound':
      return job.current === attempt.token ? toCurrent(job, attempt, move, key) : toTarget(job, attempt, move, key)
  }
}

function toCurrent(job: JobRecord, attempt: AttemptRecord, move: MoveRecord | null, key: string): Want {
  const { settings } = job.spec
  const mine = move?.source === attempt.token ? move : null
  if (mine?.outcome === 'committed') return { do: 'kill-held', move: mine.id }
  if (mine && mine.outcome === null) {
    switch (mine.step) {
      case 'probe':
      case 'target':
        return { do: 'probe', move: mine.id }
      case 'hold':
      case 'restore':
        return { do: 'hold', move: mine.id, holdFor: settings.moveHold, safePointWait: settings.safePointWait }
      default:
        return { do: 'promise', move: mine.id }
    }
  }
  if (job.wish?.to === 'stop')
    return {
      do: 'stop',
      grace: settings.stopGrace,
      save: job.wish.keep,
      safePointWait: settings.safePointWait,
      lastSlot: job.lastSlot,
    }
  return {
    do: 'run',
    start: startOf(job, attempt, key),
    slot: attempt.from,
    aborted: job.abortedMove,
    lastSlot: job.lastSlot,
  }
}

function toTarget(job: JobRecord, attempt: AttemptRecord, move: MoveRecord | null, key: string): Want | null {
  const start = startOf(job, attempt, key)
  if (job.state.is === 'resuming' && job.state.token === attempt.token)
    return attempt.from === null ? null : { do: 'prepare', start, slot: attempt.from }
  if (move?.outcome === null && move.target === attempt.token)
    return move.slot === null ? null : { do: 'prepare', start, slot: move.slot }
  return null
}

const startOf = (job: JobRecord, attempt: AttemptRecord, key: string): JobStart => ({
  jobId: job.id,
  jobName: job.name,
  command: job.spec.command,
  env: job.spec.env,
  workdir: job.spec.workdir,
  outputs: job.spec.outputs,
  checkpoint: job.spec.checkpoint,
  settings: job.spec.settings,
  offer: attempt.offer,
  key,
  lastSlot: job.lastSlot,
})
