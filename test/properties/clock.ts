import type { Clock } from '../../src/control/ports.ts'

interface Timer {
  readonly at: number
  readonly order: number
  readonly ring: () => void
}

/** Time that passes only when it is told to. What is due at the same instant happens in the order in which it was asked for. */
export class VirtualClock implements Clock {
  #now = 1_700_000_000_000
  #order = 0
  #timers: Timer[] = []

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#now
  }

  after(delay: number, ring: () => void): { cancel(): void } {
    const timer = { at: this.#now + Math.max(0, delay), order: this.#order++, ring }
    this.#timers.push(timer)
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((one) => one !== timer)
      },
    }
  }

  /** Lets time pass, one timer at a time; `settle` waits until nothing is under way. */
  async pass(duration: number, settle: () => Promise<void>): Promise<void> {
    const until = this.#now + duration
    await settle()
    let sameInstant = 0
    for (;;) {
      const next = this.#timers.reduce<Timer | null>(
        (a, b) => (!a || b.at < a.at || (b.at === a.at && b.order < a.order) ? b : a),
        null,
      )
      if (!next || next.at > until) break
      this.#timers = this.#timers.filter((one) => one !== next)
      sameInstant = next.at > this.#now ? 0 : sameInstant + 1
      if (sameInstant > 5000) throw new Error('time stands still: thousands of timers are due at one instant')
      this.#now = Math.max(this.#now, next.at)
      next.ring()
      await settle()
    }
    this.#now = until
  }
}
