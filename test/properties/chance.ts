/** Chance from a seed: the same seed, the same world (mulberry32). */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 up to, and without, 1 */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }

  happens(probability: number): boolean {
    return this.next() < probability
  }

  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }
}
