// @ts-check
/**
 * How one object is reached from another: a property key, or one of the steps that are no property. Paths for people are
 * made from them, only for what must be named.
 */

/** A step that is no property: into a map, a set, a prototype, a view's memory, what `toPortal` gave. */
export class Step {
  /**
   * @param {'key' | 'at' | 'member' | 'prototype' | 'buffer' | 'data'} kind `at`: a map's value, by a primitive key or the entry's number
   * @param {unknown} [value]
   * @param {boolean} [byNumber] the value is the entry's number, because its key is an object
   */
  constructor(kind, value, byNumber = false) {
    this.kind = kind
    this.value = value
    this.byNumber = byNumber
  }

  /** @param {Step} other */
  same(other) {
    return this.kind === other.kind && this.byNumber === other.byNumber && Object.is(this.value, other.value)
  }

  get text() {
    switch (this.kind) {
      case 'at':
        return this.byNumber ? `.get(key ${this.value})` : `.get(${primitive(this.value)})`
      case 'key':
        return `.keys()[${this.value}]`
      case 'member':
        return `.values()[${this.value}]`
      case 'prototype':
        return '.[[Prototype]]'
      case 'buffer':
        return '.buffer'
      default:
        return '.toPortal()'
    }
  }
}

export const prototypeStep = new Step('prototype')
export const bufferStep = new Step('buffer')
export const dataStep = new Step('data')

/** @typedef {string | symbol | number | Step} PathStep */

/** @param {PathStep} a @param {PathStep} b */
export const sameStep = (a, b) => {
  if (a === b) return true
  if (a instanceof Step || b instanceof Step) return a instanceof Step && b instanceof Step && a.same(b)
  // an element's number and the key that it is are one
  return typeof a !== 'symbol' && typeof b !== 'symbol' && String(a) === String(b)
}

const LONGEST = 400

/** @param {PathStep} step */
const shown = (step) => {
  if (typeof step === 'number') return `[${step}]`
  if (typeof step === 'symbol') return `[${String(step)}]`
  if (typeof step === 'string') {
    if (/^[A-Za-z_$][\w$]*$/.test(step)) return `.${step}`
    return /^(0|[1-9]\d*)$/.test(step) ? `[${step}]` : `[${JSON.stringify(step)}]`
  }
  return step.text
}

/** @param {unknown} value */
const primitive = (value) => {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
  return typeof value === 'bigint' ? `${value}n` : String(value)
}

/** `state.loader.workers[2].sock`; a path that is too long to read is cut in its middle. @param {readonly PathStep[]} steps */
export const pathText = (steps) => {
  const cut = steps.length > 60 ? [...steps.slice(0, 20), null, ...steps.slice(-20)] : steps
  const text = cut.map((step) => (step === null ? `…(${steps.length - 40} more)…` : shown(step))).join('')
  return `state${text.length > LONGEST * 4 ? `${text.slice(0, LONGEST * 2)}…${text.slice(-LONGEST * 2)}` : text}`
}
