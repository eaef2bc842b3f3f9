// @ts-check
/**
 * The loop of a job. The next step is written into the state before the flag is looked at, after the last one too, so
 * that a state saved at any turn says what is still to be done.
 */
import { createRequire } from 'node:module'

const { TURNS } = /** @type {typeof import('./shared.cjs')} */ (createRequire(import.meta.url)('./shared.cjs'))

export class Steps {
  /** @param {import('./job.js').Job} job @param {any} state @param {string} key @param {number} end */
  constructor(job, state, key, end) {
    const next = state[key]
    if (!Number.isSafeInteger(next))
      throw new TypeError(`job.steps: state.${key} is ${String(next)}, not a whole number`)
    if (typeof end !== 'number' || Number.isNaN(end))
      throw new TypeError('job.steps: the third argument is the number of steps')
    this.job = job
    this.asked = job.asked
    this.numbers = job.numbers
    this.state = state
    this.key = key
    this.end = end
    this.step = next
    this.begun = false
    this.over = false
  }

  [Symbol.iterator]() {
    return this
  }

  /** @returns {IteratorResult<number, undefined>} */
  next() {
    if (this.begun) {
      if (this.over) return { done: true, value: undefined }
      this.step++
    } else {
      this.begun = true
      this.job.loops++
    }
    this.state[this.key] = this.step
    this.numbers[TURNS] = /** @type {number} */ (this.numbers[TURNS]) + 1
    if (this.asked[0] !== 0) this.job.stop()
    if (this.step < this.end) return { done: false, value: this.step }
    return this.return()
  }

  /** The loop was left. @returns {IteratorResult<number, undefined>} */
  return() {
    if (this.begun && !this.over) this.job.loops--
    this.over = true
    return { done: true, value: undefined }
  }
}
