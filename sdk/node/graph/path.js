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
}

export const prototypeStep = new Step('prototype')
export const bufferStep = new Step('buffer')
export const dataStep = new Step('data')

/** @typedef {string | symbol | number | Step} PathStep */

/** @param {PathStep} a @param {PathStep} b */
export const sameStep = (a, b) => {
  if (a === b) return true
  if (a instanceof Step && b instanceof Step)
    return a.kind === b.kind && a.byNumber === b.byNumber && Object.is(a.value, b.value)
  return (typeof a === 'number' || typeof b === 'number') && !(a instanceof Step || b instanceof Step)
    ? typeof a !== 'symbol' && typeof b !== 'symbol' && String(a) === String(b)
    : false
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
  switch (step.kind) {
    case 'at':
      return step.byNumber ? `.get(key ${step.value})` : `.get(${primitive(step.value)})`
    case 'key':
      return `.keys()[${step.value}]`
    case 'member':
      return `.values()[${step.value}]`
    case 'prototype':
      return '.[[Prototype]]'
    case 'buffer':
      return '.buffer'
    default:
      return '.toPortal()'
  }
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
