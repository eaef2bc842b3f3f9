import type { SafePointOutcome, SdkServer } from '../checkpoints/index.ts'
import type { Duration } from '../core/time/index.ts'
import type { Around } from './around.ts'
import type { Attempt } from './attempt.ts'

/** A job whose agent was away comes back at its next safe point; how often that is looked for. */
const reconnect: Duration = 100

const pause = (ms: Duration): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Waits for a job's safe points, each as long as what it is waited for is still wanted. */
export class SafePoints {
  readonly #attempt: Attempt
  readonly #around: Around
  readonly #server: () => SdkServer | null
  #cancel: (() => void) | null = null
  #wanted: string | null = null

  constructor(attempt: Attempt, around: Around, server: () => SdkServer | null) {
    this.#attempt = attempt
    this.#around = around
    this.#server = server
  }

  /** An order changed, or a notice came. */
  reconsider(): void {
    if (this.#cancel && this.#wanted !== this.#whatIsWanted()) this.#cancel()
  }

  giveUp(): void {
    this.#cancel?.()
  }

  /** Waits for a safe point; a job that comes back to its agent meanwhile is waited for too. */
  async wait(wait: Duration): Promise<'there' | 'late' | 'gone' | 'cancelled'> {
    const until = this.#around.clocks.monotonic() + wait
    this.#wanted = this.#whatIsWanted()
    const cancelled = new Promise<'cancelled'>((resolve) => {
      this.#cancel = () => resolve('cancelled')
    })
    try {
      for (;;) {
        const left = until - this.#around.clocks.monotonic()
        const server = this.#server()
        if (!server || this.#attempt.state.exit) return 'gone'
        if (left <= 0) return 'late'
        const outcome: SafePointOutcome | 'cancelled' = await Promise.race([server.safePoint(left), cancelled])
        if (outcome === 'cancelled') {
          server.unask()
          return 'cancelled'
        }
        if (outcome.is === 'there') return 'there'
        if (outcome.is === 'late') return 'late'
        if (outcome.is === 'closed') return 'gone'
        await Promise.race([pause(reconnect), cancelled])
      }
    } finally {
      this.#cancel = null
    }
  }

  /** What a safe point is waited for: when this changes while waiting, the wait is over. */
  #whatIsWanted(): string {
    const { want } = this.#attempt.state
    const notice = this.#around.notice()?.endsAt ?? 0
    return want.do === 'hold' ? `hold ${want.move}` : `${want.do} ${want.do === 'probe' ? want.move : ''} ${notice}`
  }
}

/** Why there was none, in one sentence. */
export const noSafePoint = (is: 'late' | 'gone', wait: Duration): string =>
  is === 'late'
    ? `the job reached no safe point within ${Math.round(wait / 1000)} s: it is long in one step, or does not call job.steps`
    : 'the job ended before it reached a safe point'
