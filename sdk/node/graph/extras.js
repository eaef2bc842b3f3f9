// @ts-check
/**
 * Whether a large array has properties beside its elements, without listing a name for each element: a million of them
 * would cost more than everything else. The engine's inspector knows; where its answer is not as expected, nothing is
 * assumed and the names are listed after all.
 */
import { inspect } from 'node:util'
import {
  getPrototypeOf,
  setPrototypeOf,
  typedArrayLength,
  typedArrayName,
  typedArrayTypes,
  typedArrayBuffer,
  typedArrayOffset,
  namesOfPrototypes,
} from './builtins.js'
import { Kind } from './format.js'

const SMALL = 128
/** Everything that the answer's form depends on, whatever a job made the default. */
const options = {
  maxArrayLength: 0,
  depth: 0,
  showHidden: true,
  customInspect: false,
  compact: true,
  breakLength: Infinity,
  colors: false,
  sorted: false,
  getters: false,
  numericSeparator: false,
}

/** @param {any} array @param {number} kind @returns {boolean} true: certainly none */
export const hasOnlyElements = (array, kind) => {
  const prototype = getPrototypeOf(array)
  if (!namesOfPrototypes.has(prototype)) return false
  if (kind === Kind.array) {
    if (prototype !== Array.prototype || array.length < SMALL) return false
    return inspect(array, options) === `[ ... ${array.length} more items, [length]: ${array.length} ]`
  }
  const length = typedArrayLength(array)
  if (length < SMALL) return false
  const type = typedArrayTypes.get(typedArrayName(array))
  const twin = new type(typedArrayBuffer(array), typedArrayOffset(array), length)
  if (getPrototypeOf(twin) !== prototype) setPrototypeOf(twin, prototype)
  return inspect(array, options) === inspect(twin, options)
}
