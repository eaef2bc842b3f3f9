/** The changes of rows that more than one step writes: each stands for one thing that becomes true of a job. */
import type { AttemptRecord, JobRecord, MoveRecord, PassedOver } from '../../core/jobs/model.ts'
import type { Instant } from '../../core/time/index.ts'
import type { Change } from '../../store/port.ts'

export const updateAttempt = (attempt: AttemptRecord, row: Partial<Omit<AttemptRecord, 'id' | 'version'>>): Change => ({
  do: 'update',
  table: 'attempts',
  id: attempt.id,
  expect: attempt.version,
  row,
})

export const updateMove = (move: MoveRecord, row: Partial<Omit<MoveRecord, 'id' | 'version'>>): Change => ({
  do: 'update',
  table: 'moves',
  id: move.id,
  expect: move.version,
  row,
})

/** Not let go yet: its machine is there, or may be. */
export const isHere = ({ state }: AttemptRecord): boolean => state !== 'ending' && state !== 'gone'

/** Lets a machine go: from here on its provider may be told to end it. Only together with the write that takes the job from it. */
export const toEnding = (attempt: AttemptRecord, now: Instant, more: Partial<AttemptRecord> = {}): Change =>
  updateAttempt(attempt, {
    state: 'ending',
    endingAt: now,
    ranUntil: attempt.ranFrom === null ? null : (attempt.ranUntil ?? now),
    ...more,
  })

/** What is committed at an attempt's connection grows by so much, or shrinks. Within its cap only where somebody may still say no. */
export const commitMoney = ({ offer }: Pick<AttemptRecord, 'offer'>, micros: number, withinCap = false): Change => ({
  do: 'add',
  table: 'connections',
  id: offer.connection,
  micros,
  withinCap,
})

/** A move whose target this attempt was looks for another one. */
export const withoutTarget = (move: MoveRecord | null, attempt: AttemptRecord): Change[] =>
  move?.target === attempt.token ? [updateMove(move, { target: null })] : []

/** The job runs as this attempt from now on. */
export const runsAs = ({ token }: AttemptRecord, now: Instant) =>
  ({
    state: { is: 'running', since: now, unreachableSince: null },
    current: token,
    passedOver: [],
    warnings: [],
  }) satisfies Partial<JobRecord>

/** Nothing of the job runs any more: no attempt is the current one, and no move is open. */
export const runsNowhere = { current: null, move: null, abortedMove: null } satisfies Partial<JobRecord>

/** Offers that were not to be had in this placement, with one more; each once, with its newest reason. */
export const passedOverAnd = ({ passedOver }: JobRecord, offer: PassedOver): readonly PassedOver[] => [
  ...passedOver.filter((one) => one.offer !== offer.offer),
  offer,
]
