// @ts-check
/** What an object is, by what the engine says of it: never by its prototype or a tag, which anyone can set. */
import { getPrototypeOf, isArray, isView, types, urlHref } from './builtins.js'
import { Kind } from './format.js'

/** @typedef {{ type: string, reason: string, advice: string }} Refusal */

const leaveOut = 'leave it out of the state and make it anew when the script starts'

/** @type {Record<string, Refusal>} */
export const refusals = {
  proxy: { type: 'Proxy', reason: 'nobody can look behind a Proxy', advice: 'put its target into the state instead' },
  promise: {
    type: 'Promise',
    reason: 'what it waits for cannot be carried',
    advice: 'await it before the safe point, or leave it out of the state',
  },
  weakMap: { type: 'WeakMap', reason: 'what it refers to weakly cannot be listed', advice: leaveOut },
  weakSet: { type: 'WeakSet', reason: 'what it refers to weakly cannot be listed', advice: leaveOut },
  generator: {
    type: 'generator',
    reason: 'where a generator stands cannot be read',
    advice: 'keep an index instead, and make the generator anew',
  },
  iterator: { type: 'iterator', reason: 'where an iterator stands cannot be read', advice: 'keep an index instead' },
  shared: {
    type: 'SharedArrayBuffer',
    reason: 'other threads may write into it at any time',
    advice: 'copy it into an ArrayBuffer in job.onSuspend, or leave it out of the state',
  },
  arguments: {
    type: 'arguments',
    reason: 'it is tied to the parameters of its function',
    advice: 'put an array into the state: [...arguments]',
  },
  external: { type: 'external', reason: 'it is a pointer into native code', advice: leaveOut },
  namespace: {
    type: 'module',
    reason: 'a module is code',
    advice: 'leave it out of the state; the script imports it again',
  },
  global: { type: 'globalThis', reason: 'it is the whole process', advice: leaveOut },
  detached: {
    type: 'ArrayBuffer',
    reason: 'its memory was given away (transferred)',
    advice: 'drop it from the state',
  },
}

/** @param {object} value @returns {number | Refusal} one of `Kind`, or why not */
export const kindOf = (value) => {
  if (types.isProxy(value)) return /** @type {Refusal} */ (refusals.proxy)
  if (isArray(value)) return Kind.array
  if (isView(value)) return types.isDataView(value) ? Kind.dataView : Kind.typedArray
  if (types.isMap(value)) return Kind.map
  if (types.isSet(value)) return Kind.set
  if (types.isDate(value)) return Kind.date
  if (types.isRegExp(value)) return Kind.regexp
  if (types.isNativeError(value)) return Kind.error
  if (types.isBoxedPrimitive(value)) return Kind.boxed
  if (types.isAnyArrayBuffer(value)) return types.isSharedArrayBuffer(value) ? refused('shared') : Kind.arrayBuffer
  if (types.isPromise(value)) return refused('promise')
  if (types.isWeakMap(value)) return refused('weakMap')
  if (types.isWeakSet(value)) return refused('weakSet')
  if (types.isGeneratorObject(value)) return refused('generator')
  if (types.isMapIterator(value) || types.isSetIterator(value)) return refused('iterator')
  if (types.isArgumentsObject(value)) return refused('arguments')
  if (types.isModuleNamespaceObject(value)) return refused('namespace')
  if (types.isExternal(value)) return refused('external')
  if (value === globalThis) return refused('global')
  return isUrl(value) ? Kind.url : Kind.object
}

/** @param {string} name @returns {Refusal} */
const refused = (name) => /** @type {Refusal} */ (refusals[name])

/** @param {object} value */
const isUrl = (value) => {
  const prototype = getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return false
  for (
    let at = /** @type {object | null} */ (prototype), depth = 0;
    at !== null && depth < 1000;
    at = getPrototypeOf(at), depth++
  ) {
    if (types.isProxy(at)) return false
    if (at === URL.prototype) return hasHref(value)
  }
  return false
}

/** @param {object} value */
const hasHref = (value) => {
  try {
    urlHref(value)
    return true
  } catch {
    return false
  }
}
