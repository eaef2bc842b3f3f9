import type { Duration, Instant } from '../core/time/index.ts'

/** Time and chance come in here, so that the same control plane runs on virtual time. */
export interface Clock {
  now(): Instant
  /** Calls back once, no earlier than `delay` from now. */
  after(delay: Duration, then: () => void): { cancel(): void }
}

export interface Random {
  /** @returns small letters and digits, each with 5 bits of chance */
  letters(count: number): string
}
