import { minute, second, type Instant } from '../../time/index.ts'
import type { AttemptRecord } from '../model.ts'
import { leaseOver, provenGone, type World } from '../world.ts'
import { wait, type Step } from './step.ts'

/** How often a machine that is to go is looked at while its provider has not confirmed it. */
const lookEvery = 2 * second
const backstop = minute

/** Machines that no job needs any more: ended, and settled once they are proven gone. A machine that cannot be ended stays `ending`. */
export function leaving(world: World, now: Instant, owned: (connection: string) => boolean): Step {
  let until: Instant = Infinity
  for (const attempt of world.attempts) {
    if (attempt.state !== 'ending') continue
    if (isGone(attempt, world, now, owned(attempt.offer.connection))) return { do: 'settle', attempt }
    if (owned(attempt.offer.connection)) {
      until = Math.min(until, now + backstop)
      continue
    }
    const { provider } = world.seen(attempt.token)
    if (provider === null || now >= provider.askedAt + lookEvery) return { do: 'end-machine', attempt }
    until = Math.min(until, provider.askedAt + lookEvery)
  }
  return wait(until)
}

function isGone(attempt: AttemptRecord, world: World, now: Instant, owned: boolean): boolean {
  const seen = world.seen(attempt.token)
  if (!owned) return provenGone(seen) !== null
  if (attempt.machineId === null) return true
  // An owned machine is never ended. Its agent says when nothing of the job is left; where it cannot be heard, its lease decides.
  if (seen.connected && seen.machine !== null && !seen.unanswered)
    return seen.report === null || seen.report.phase === 'ended'
  return leaseOver(seen, now)
}
