import type { Policy } from '../../decide.ts'
import { why } from '../../reasons.ts'
import { currentOf, type World } from '../world.ts'
import { act, rest, type JobAct } from './acts.ts'

/**
 * Keeps the hard stop of the job's machines ahead (J-LEASE-1). A lease is asked for by the machine, never pushed: what is
 * granted is a length that its own clock counts from when it asked. Renewing changes nothing about where the job runs.
 */
export const lease: Policy<World, JobAct> = {
  name: 'lease',
  decide(world, now) {
    const { leaseLength: length } = world.job.spec.settings
    for (const attempt of world.attempts) {
      const nonce = attempt.state === 'bound' ? world.seen(attempt.token).renewAsked : null
      if (nonce !== null)
        return act(
          { do: 'renew', attempt: attempt.id, nonce },
          length === 'detached' ? why('lease.detached') : why('lease.renewed', { length_ms: length }),
        )
    }
    if (length === 'detached') return rest('lease.detached', {}, Infinity)
    const current = currentOf(world)
    if (!current) return rest('machine.none', {}, Infinity)
    const ends = world.seen(current.token).leaseEnds
    return rest('lease.fresh', { left_ms: ends === null ? Infinity : Math.max(0, ends - now) }, Infinity)
  },
}
