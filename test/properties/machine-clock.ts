import type { VirtualClock } from './clock.ts'

interface Pending {
  remaining: number
  readonly ring: () => void
  at: number
  timer: { cancel(): void } | null
}

/**
 * One machine's own time. It stops with the machine: a paused one does nothing, and whether the pause counts is a matter of its
 * clock. A laptop that slept has a clock that went on; that of a virtual machine stood still, and its processes never know.
 */
export class MachineClock {
  readonly #world: VirtualClock
  readonly #pending = new Set<Pending>()
  #lost = 0
  #pausedAt: number | null = null

  constructor(world: VirtualClock) {
    this.#world = world
  }

  get isPaused(): boolean {
    return this.#pausedAt !== null
  }

  now(): number {
    return (this.#pausedAt ?? this.#world.now()) - this.#lost
  }

  after(delay: number, ring: () => void): { cancel(): void } {
    if (delay === Infinity) return { cancel: () => {} }
    const one: Pending = {
      remaining: Math.max(0, delay),
      ring,
      at: this.#world.now() + Math.max(0, delay),
      timer: null,
    }
    this.#pending.add(one)
    if (this.#pausedAt === null) this.#arm(one)
    return {
      cancel: () => {
        one.timer?.cancel()
        this.#pending.delete(one)
      },
    }
  }

  pause(): void {
    if (this.#pausedAt !== null) return
    this.#pausedAt = this.#world.now()
    for (const one of this.#pending) {
      one.timer?.cancel()
      one.remaining = one.at - this.#pausedAt
    }
  }

  /** @param goesOn whether its clock went on meanwhile */
  goOn(goesOn: boolean): void {
    if (this.#pausedAt === null) return
    const length = this.#world.now() - this.#pausedAt
    if (!goesOn) this.#lost += length
    this.#pausedAt = null
    for (const one of [...this.#pending].sort((a, b) => a.at - b.at)) {
      one.at = this.#world.now() + Math.max(0, goesOn ? one.remaining - length : one.remaining)
      this.#arm(one)
    }
  }

  #arm(one: Pending): void {
    one.timer = this.#world.after(one.at - this.#world.now(), () => {
      this.#pending.delete(one)
      one.ring()
    })
  }
}
