import type { Instant } from '../../time/index.ts'
import { isEnded } from '../model.ts'
import type { World } from '../world.ts'
import { afterwards } from './afterwards.ts'
import { leaving } from './leaving.ts'
import { moving } from './moving.ts'
import { running } from './running.ts'
import { starting } from './starting.ts'
import type { Step } from './step.ts'

export type { Step } from './step.ts'

/**
 * What to do next for a job. Machines that are to go come first (they cost money whatever the job does), then what the job's
 * state asks for. Pure, and asked again after every step, event, timer and restart.
 *
 * @param owned whether a connection's machines are a person's own
 */
export function nextStep(world: World, now: Instant, owned: (connection: string) => boolean): Step {
  const leave = leaving(world, now, owned)
  if (leave.do !== 'wait') return leave
  const step = ofState(world, now)
  return step.do === 'wait' ? { do: 'wait', until: Math.min(step.until, leave.until) } : step
}

function ofState(world: World, now: Instant): Step {
  switch (world.job.state.is) {
    case 'queued':
    case 'starting':
    case 'resuming':
      return starting(world, now)
    case 'running':
      return running(world, now)
    case 'moving':
    case 'suspending':
      return moving(world, now)
    default:
      return isEnded(world.job.state) || world.job.state.is === 'suspended'
        ? afterwards(world, now)
        : { do: 'wait', until: Infinity }
  }
}
