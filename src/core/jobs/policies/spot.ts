import type { Policy } from '../../decide.ts'
import { why } from '../../reasons.ts'
import { minute, second, type Duration } from '../../time/index.ts'
import { currentOf, type World } from '../world.ts'
import { act, rest, warn, type JobAct } from './acts.ts'

/** A notice whose end has passed for this long was withdrawn or wrong: the machine lives. */
const overFor: Duration = 5 * minute
/** While a notice lasts a refused save is tried again this often: a job may close what could not be carried (J-STRICT-2). */
const tryAgain: Duration = 5 * second

/** On a notice the job is saved and suspended (J-SPOT-1). Its agent has begun to save by itself already. */
export const spot: Policy<World, JobAct> = {
  name: 'spot',
  decide(world, now) {
    const current = currentOf(world)
    if (!current) return rest('machine.none', {}, Infinity)
    const { id: offer } = current.offer
    if (!world.job.spec.settings.spot) return rest('spot.off', { offer }, Infinity)

    const notice = world.seen(current.token).machine?.notice ?? null
    if (notice === null || now > notice.endsAt + overFor) return rest('spot.quiet', { offer }, Infinity)

    const facts = { offer, left_ms: Math.max(0, notice.endsAt - now) }
    const { lastMove } = world
    const refusedAt =
      lastMove?.outcome === 'aborted' && lastMove.source === current.token && lastMove.kind === 'suspension'
        ? (lastMove.times.aborted ?? 0)
        : 0
    if (now < refusedAt + tryAgain) return warn('spot.refused', facts, refusedAt + tryAgain)
    return act({ do: 'suspend' }, why('spot.notice', facts))
  },
}
