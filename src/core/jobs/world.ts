import type { Duration, Instant } from '../time/index.ts'
import type { AttemptReport, MachineReport } from './agent.ts'
import type { AttemptRecord, JobRecord, MoveRecord } from './model.ts'

/** What is seen of one attempt now, beside what is remembered of it. */
export interface Seen {
  /** the agent's last report; null: none since this control plane looks */
  readonly report: AttemptReport | null
  readonly machine: MachineReport | null
  readonly connected: boolean
  /** it was told to begin over this connection, and its agent has not told of it yet: that it does not know it proves nothing */
  readonly unanswered: boolean
  /** when its agent was last heard, or since when this control plane looks */
  readonly heardAt: Instant
  /** the provider's word, where it was asked: since when it says so, and when it was asked last */
  readonly provider: {
    readonly says: 'alive' | 'terminal' | 'not_found' | 'unknown'
    readonly since: Instant
    readonly askedAt: Instant
    readonly words: string
  } | null
  /** by the control plane's reckoning the machine has ended the job by then; null: no lease runs */
  readonly leaseEnds: Instant | null
  /** the nonce of a lease that its agent asks for */
  readonly renewAsked: string | null
  /** how much of its log the control plane holds */
  readonly logBytes: number
  /** whether its declared outputs have arrived (true where it has none) */
  readonly outputsIn: boolean
}

/** One job, whole: what is remembered and what is seen. The snapshot that steps and policies see. */
export interface World {
  readonly job: JobRecord
  /** all its attempts, rising by token */
  readonly attempts: readonly AttemptRecord[]
  /** the open move, or the committed suspension whose end was not confirmed yet */
  readonly move: MoveRecord | null
  /** the last move or suspension that was decided */
  readonly lastMove: MoveRecord | null
  readonly seen: (token: number) => Seen
}

/** An agent that is silent for this long is said to be unreachable. */
export const unreachableAfter: Duration = 15_000
/** *Gone* by absence takes two looks at least this far apart. */
export const notFoundFor: Duration = 5 * 60_000

export const attemptOf = (world: World, token: number | null): AttemptRecord | null =>
  world.attempts.find((one) => one.token === token) ?? null
export const currentOf = (world: World): AttemptRecord | null => attemptOf(world, world.job.current)

/** Whether the provider proves that the machine is gone: a final state of that very machine, or its absence at two looks far enough apart. */
export function provenGone(seen: Seen): string | null {
  const { provider } = seen
  if (provider?.says === 'terminal') return `its provider says ${provider.words}`
  if (provider?.says === 'not_found' && provider.askedAt - provider.since >= notFoundFor)
    return 'its provider does not know it any more'
  return null
}

/**
 * Whether the machine has ended the job by now, by the control plane's reckoning of its lease, and could promise to (J-LEASE-3).
 * It decides alone only where the machine cannot be heard.
 */
export const leaseOver = ({ leaseEnds, machine }: Seen, now: Instant): boolean =>
  leaseEnds !== null && now >= leaseEnds && machine?.confines !== 'none'
