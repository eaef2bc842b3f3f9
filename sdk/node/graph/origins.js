// @ts-check
/**
 * Where in the state an object stood when `job.state()` was called: the names that the script holds point to those
 * objects, so a resume gives each of them its own content back, wherever in the state it stands by then. (Two buffers
 * that are swapped at each step come back as the script's own two, swapped.) An object made later has no origin: no name
 * from the lines above `job.state()` can point to it.
 */
import { sameStep } from './path.js'

/** @typedef {import('./path.js').PathStep} PathStep */

export class Origin {
  /** @param {Origin | null} parent @param {PathStep} step */
  constructor(parent, step) {
    this.parent = parent
    this.step = step
    /** @type {Map<unknown, Origin[]> | null} */
    this.children = null
  }

  /** The one origin that is reached from here by this step. @param {PathStep} step @returns {Origin} */
  child(step) {
    this.children ??= new Map()
    const key = keyOf(step)
    const list = this.children.get(key)
    const found = list?.find((child) => sameStep(child.step, step))
    if (found) return found
    const made = new Origin(this, step)
    if (list) list.push(made)
    else this.children.set(key, [made])
    return made
  }

  /** @returns {PathStep[]} */
  path() {
    const steps = []
    for (let at = /** @type {Origin} */ (this); at.parent !== null; at = at.parent) steps.push(at.step)
    return steps.toReversed()
  }
}

/** Steps that are not the same may share a key, the same ones always do. @param {PathStep} step */
const keyOf = (step) => {
  if (typeof step === 'number') return String(step)
  if (typeof step !== 'object') return step
  return typeof step.value === 'symbol' ? step.value : `${step.kind} ${typeof step.value} ${String(step.value)}`
}

export class Origins {
  constructor() {
    this.root = new Origin(null, '')
    /** @type {WeakMap<object, Origin>} */
    this.of = new WeakMap()
  }

  /** @param {object} object @param {Origin | null} origin */
  note(object, origin) {
    if (origin) this.of.set(object, origin)
    else this.of.delete(object)
  }
}
