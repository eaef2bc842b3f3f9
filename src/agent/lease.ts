import { randomUUID } from 'node:crypto'
import { second, type Duration } from '../core/time/index.ts'

/** An answer that does not come is asked for again after this long. */
const askAgain: Duration = 5 * second

/**
 * The lease of one attempt, asked for and never pushed (J-LEASE-2): it ends a length after this machine *asked*, by boot
 * time. Late, lost, doubled and reordered answers can only shorten it.
 */
export class Lease {
  #until: Duration | null = null
  #grantedFor: Duration = -Infinity
  #askedAt: Duration = -Infinity
  #answered = true
  readonly #asked = new Map<string, Duration>()

  /** Boot time at which it ends; null: none was granted. */
  get until(): Duration | null {
    return this.#until
  }

  /** When the request was made that was answered last. */
  get grantedFor(): Duration {
    return this.#grantedFor
  }

  /** Detached: it never ends. */
  detach(): void {
    this.#until = Infinity
    this.#grantedFor = Infinity
  }

  /** One that was granted under this boot before the agent was started again. */
  found(until: Duration): void {
    this.#until = until
  }

  /** Boot time at which it is to be asked for next. */
  due(renewEvery: Duration): Duration {
    return this.#askedAt + (this.#answered ? renewEvery : Math.min(askAgain, renewEvery))
  }

  /** After a connect, a restart, a jump of the clock: as soon as possible. */
  askSoon(): void {
    this.#askedAt = -Infinity
  }

  /** Asks: the nonce stands for now. */
  ask(boot: Duration): string {
    const nonce = randomUUID()
    this.#asked.set(nonce, boot)
    this.#askedAt = boot
    this.#answered = false
    // answers to older ones would only say less
    for (const old of this.#asked.keys()) if (this.#asked.size > 16) this.#asked.delete(old)
    return nonce
  }

  /** False: an answer to nothing that was asked, or older than one that came already. */
  granted(nonce: string, length: Duration): boolean {
    const asked = this.#asked.get(nonce)
    if (asked === undefined || asked < this.#grantedFor) return false
    this.#asked.delete(nonce)
    this.#grantedFor = asked
    this.#until = asked + length
    if (asked >= this.#askedAt) this.#answered = true
    return true
  }
}
