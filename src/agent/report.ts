import type { AttemptReport } from '../contract/agent.ts'
import type { AttemptSeen, AttemptState, Now } from './model.ts'
import { methodOf, phaseOf } from './step.ts'

/** What only counts, beside what is remembered. */
export type Counts = Pick<AttemptReport, 'progress' | 'sample' | 'logBytes' | 'outputAt'>

/** All that is told of an attempt. */
export const reportOf = (state: AttemptState, seen: AttemptSeen, now: Now, counts: Counts): AttemptReport => {
  const { held } = state
  return {
    attempt: state.attempt,
    token: state.token,
    version: Math.max(0, state.version),
    phase: phaseOf(state, seen),
    method: methodOf(state, now),
    sdk: state.sdk,
    exit: state.exit,
    probe: state.probe,
    held: held && { move: held.move, slot: held.slot, logOffset: held.logOffset, because: held.because },
    promised: state.promised,
    voided: state.voided,
    saveRefused: state.saveRefused,
    restoreFailed: state.restoreFailed,
    saved: state.saved,
    undeclared: state.undeclared,
    told: state.told,
    ...counts,
    // what is over has no use any more
    sample: state.exit ? null : counts.sample,
  }
}
