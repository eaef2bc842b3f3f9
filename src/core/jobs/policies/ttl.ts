import type { Policy } from '../../decide.ts'
import { why } from '../../reasons.ts'
import { ranFor } from '../spending.ts'
import type { World } from '../world.ts'
import { act, rest, type JobAct } from './acts.ts'

/**
 * Ends a job whose time is over: a running one after machines have run it for `ttl` (J-TTL-1), a suspended one when as long
 * has passed on the clock since its creation (J-TTL-2). Time between machines does not count for the first; both counts go on
 * through every move and resume.
 */
export const ttl: Policy<World, JobAct> = {
  name: 'ttl',
  decide({ job, attempts }, now) {
    const { ttl: limit, ttlKeep: keep } = job.spec.settings
    if (limit === 'off') return rest('ttl.off', {}, Infinity)

    if (job.state.is === 'suspended') {
      const age = now - job.ttlFrom
      const facts = { age_ms: age, ttl_ms: limit, keep_ms: keep }
      return age >= limit
        ? act({ do: 'end' }, why('ttl.clock', facts))
        : rest('ttl.clock_within', facts, job.ttlFrom + limit)
    }

    const ran = ranFor(job, attempts, now)
    const facts = { ran_ms: ran, ttl_ms: limit }
    const runs = job.current !== null
    if (runs && ran >= limit) return act({ do: 'stop' }, why('ttl.over', facts))
    return rest('ttl.within', facts, runs ? now + (limit - ran) : Infinity)
  },
}
