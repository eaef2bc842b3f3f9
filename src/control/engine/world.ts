import { attemptOf, type Seen, type World } from '../../core/jobs/world.ts'
import type { AttemptRecord } from '../../core/jobs/model.ts'
import { leaseReckoned } from '../../core/jobs/spending.ts'
import { second, type Duration, type Instant } from '../../core/time/index.ts'
import type { Clock } from '../ports.ts'
import type { Context } from './context.ts'

/** Clocks are disciplined in small steps; what is longer is a jump. */
const jumpFrom: Duration = 2 * second

/** What is known of machines beside what is remembered: gone with this process, and asked again by the next. */
export class Sights {
  readonly #provider = new Map<string, NonNullable<Seen['provider']>>()
  readonly #renewals = new Map<string, string>()
  readonly #maybeStarted = new Set<string>()
  readonly #began: Instant
  #since: Instant
  /** by how much the wall clock was ahead of the clock that only goes forward */
  #ahead: number

  constructor(clock: Clock) {
    this.#since = clock.now()
    this.#began = clock.now()
    this.#ahead = clock.now() - clock.monotonic()
  }

  /**
   * Notices that the wall clock jumped, or that this machine slept: what was reckoned from it is worth nothing, so every live
   * lease counts as granted now.
   *
   * @returns by how much it jumped; 0: it did not
   */
  clockJumped(clock: Clock): Duration {
    const jump = clock.now() - clock.monotonic() - this.#ahead
    if (Math.abs(jump) <= jumpFrom) return 0
    this.#ahead += jump
    this.#since = clock.now()
    return jump
  }

  /** The provider's word of a machine; the same word again keeps the moment it was first said. */
  provider(attemptId: string, says: NonNullable<Seen['provider']>['says'], words: string, at: Instant): void {
    const before = this.#provider.get(attemptId)
    this.#provider.set(attemptId, { says, words, askedAt: at, since: before?.says === says ? before.since : at })
  }

  /** A complete listing lacks a machine that was never answered for; the second one, long enough after the first, is the proof. */
  notListed(attemptId: string, settles: Duration, at: Instant): void {
    this.provider(attemptId, 'not_found', 'it is not listed', at)
    const { since } = this.#provider.get(attemptId) as NonNullable<Seen['provider']>
    if (at - since >= settles) this.provider(attemptId, 'terminal', 'it was never started', at)
  }

  mayBeStarted(attemptId: string): void {
    this.#maybeStarted.add(attemptId)
  }

  /** Whether a start of this row was asked for without an answer, or may have been by a control plane before this one. */
  isMaybeStarted({ id, intendedAt }: AttemptRecord): boolean {
    return intendedAt <= this.#began || this.#maybeStarted.has(id)
  }

  renewAsked(attemptId: string, nonce: string | null): void {
    if (nonce === null) this.#renewals.delete(attemptId)
    else this.#renewals.set(attemptId, nonce)
  }

  forget(attemptId: string): void {
    this.#provider.delete(attemptId)
    this.#renewals.delete(attemptId)
    this.#maybeStarted.delete(attemptId)
  }

  seen(context: Context, attempt: AttemptRecord, world: Pick<World, 'job'>): Seen {
    const { report, machine, connected, unanswered, heardAt } = context.agents.heard(attempt)
    const { settings, outputs } = world.job.spec
    // a machine that is heard is there, whatever its provider did not find before
    if (connected && this.#provider.get(attempt.id)?.says === 'not_found') this.#provider.delete(attempt.id)
    const length = attempt.lease?.length ?? settings.checkin
    // a control plane that was away, or whose clock jumped, counts every live lease as granted when it came (hard-parts 3)
    const from = attempt.lease
      ? Math.max(attempt.lease.grantedAt, this.#since)
      : (attempt.startedAt ?? attempt.intendedAt)
    return {
      report,
      machine,
      connected,
      unanswered,
      heardAt,
      provider: this.#provider.get(attempt.id) ?? null,
      leaseEnds: settings.leaseLength === 'detached' ? null : from + leaseReckoned(length, settings),
      renewAsked: this.#renewals.get(attempt.id) ?? null,
      logBytes: context.logs.size(attempt.id),
      outputsIn: outputs.length === 0 || context.outputsIn(attempt.id),
    }
  }
}

/** Reads one job whole; null: there is no such job. */
export async function readWorld(context: Context, sights: Sights, jobId: string): Promise<World | null> {
  const job = await context.store.get('jobs', jobId)
  if (!job) return null
  const attempts = await context.store.attemptsOf(jobId)
  const moves = job.move !== null || job.abortedMove !== null ? await context.store.movesOf(jobId) : []
  const cache = new Map<number, Seen>()
  const world: World = {
    job,
    attempts,
    move: moves.find(({ id }) => id === job.move) ?? null,
    lastMove: moves
      .filter(({ outcome }) => outcome !== null)
      .reduce<World['lastMove']>((a, b) => (a && at(a) > at(b) ? a : b), null),
    seen: (token) => {
      let seen = cache.get(token)
      if (!seen) {
        const attempt = attemptOf(world, token)
        if (!attempt) throw new RangeError(`job ${jobId} has no attempt ${token}`)
        seen = sights.seen(context, attempt, world)
        cache.set(token, seen)
      }
      return seen
    },
  }
  return world
}

const at = (move: NonNullable<World['lastMove']>): number => move.times.aborted ?? move.times.committed ?? 0
