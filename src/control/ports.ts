import type { Duration, Instant } from '../core/time/index.ts'

/** Time and chance come in here, so that the same control plane runs on virtual time. */
export interface Clock {
  now(): Instant
  /** Time that only goes forward, ms from some beginning; it stands still while the machine sleeps. Tells a jump of the wall clock. */
  monotonic(): Duration
  /** Calls back once, no earlier than `delay` from now. */
  after(delay: Duration, then: () => void): { cancel(): void }
}

export interface Random {
  /** @returns small letters and digits, each with 5 bits of chance */
  letters(count: number): string
}
