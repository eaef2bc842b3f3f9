// @ts-check
/** The values that cannot be carried, all of them together (K-STRICT-1). */

/** @typedef {{ path: string, type: string, reason: string, advice: string }} RefusedValue */

export const MOST_REFUSED = 1000

export class Refusals {
  constructor() {
    /** @type {RefusedValue[]} */
    this.values = []
    this.rest = 0
  }

  get any() {
    return this.values.length > 0
  }

  /** @param {() => string} path @param {string} type @param {string} reason @param {string} advice */
  add(path, type, reason, advice) {
    if (this.values.length < MOST_REFUSED) this.values.push({ path: path(), type, reason, advice })
    else this.rest++
  }

  /** At most 1,000, and a last one that counts the rest. @returns {RefusedValue[]} */
  list() {
    if (this.rest === 0) return this.values
    const more = { path: 'state', type: 'more', reason: `${this.rest} more values cannot be carried`, advice: '' }
    return [...this.values, more]
  }
}

/** @param {readonly RefusedValue[]} values */
export const refusalText = (values) =>
  values.map((value) => `  ${value.path}: ${value.type}: ${value.reason}; ${value.advice}`).join('\n')
