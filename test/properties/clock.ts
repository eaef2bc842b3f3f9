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
  #timers = new Set<Timer>()

  now(): number {
    return this.#now
  }

  /** This world's wall clock never jumps. */
  monotonic(): number {
    return this.#now
  }

  after(delay: number, ring: () => void): { cancel(): void } {
    if (delay === Infinity) return { cancel: () => {} }
    const timer = { at: this.#now + Math.max(0, delay), order: this.#order++, ring }
    this.#timers.add(timer)
    return { cancel: () => void this.#timers.delete(timer) }
  }

  /** Lets time pass, one timer at a time; `settle` waits until nothing is under way. */
  async pass(duration: number, settle: () => Promise<void>): Promise<void> {
    const until = this.#now + duration
    await settle()
    let sameInstant = 0
    for (;;) {
      const next = this.#next()
      if (!next || next.at > until) break
      this.#timers.delete(next)
      sameInstant = next.at > this.#now ? 0 : sameInstant + 1
      if (sameInstant > 5000) throw new Error('time stands still: thousands of timers are due at one instant')
      this.#now = Math.max(this.#now, next.at)
      next.ring()
      await settle()
    }
    this.#now = until
  }

  #next(): Timer | null {
    let next: Timer | null = null
    for (const one of this.#timers)
      if (!next || one.at < next.at || (one.at === next.at && one.order < next.order)) next = one
    return next
  }
}
