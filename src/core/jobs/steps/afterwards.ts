import { why } from '../../reasons.ts'
import { day, type Instant } from '../../time/index.ts'
import type { World } from '../world.ts'
import { wait, type Step } from './step.ts'

/** A job of which nothing runs: its checkpoint is kept as long as was promised, its bytes a day longer (J-SUSP-1). */
export function afterwards({ job }: World, now: Instant): Step {
  const { state } = job
  if (state.is === 'suspended') {
    if (job.wish?.to === 'stop')
      return {
        do: 'end-job',
        state: {
          is: 'stopped',
          since: now,
          by: job.wish.by,
          why: job.wish.why,
          resumableUntil: now + job.spec.settings.ttlKeep,
        },
      }
    if (now < state.expiresAt) return wait(state.expiresAt)
    const { checkpointKeep } = job.spec.settings
    return {
      do: 'end-job',
      state: { is: 'failed', since: now, why: why('expired', { keep_ms: checkpointKeep }), resumableUntil: now + day },
    }
  }
  if (job.base === null && job.lastSlot === 0) return wait(Infinity)
  const until = state.is === 'failed' || state.is === 'stopped' ? (state.resumableUntil ?? state.since) : state.since
  return now >= until + day ? { do: 'expire' } : wait(until + day)
}
