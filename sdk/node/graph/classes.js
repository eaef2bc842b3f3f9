// @ts-check
/**
 * Which classes a job's state is made of. A class is carried by its name, so both sides must know it: it was registered,
 * or an object of it stood in the state when `job.state()` was called.
 */
import {
  constructorsByName,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  isNative,
  iteratorPrototypes,
  namesOfConstructors,
  namesOfPrototypes,
  TypedArray,
  types,
} from './builtins.js'
import { privateStateOf } from './source.js'

/**
 * What is to be done with an object's prototype.
 * @typedef {{ do: 'plain' }
 *   | { do: 'null' }
 *   | { do: 'builtin', name: string }
 *   | { do: 'named', name: string, custom: boolean }
 *   | { do: 'ref' }
 *   | { do: 'refuse', type: string, reason: string, advice: string, unknown: Function | null }} PrototypeVerdict
 */

const MOST_DEPTH = 1_000

export class Classes {
  constructor() {
    /** @type {Map<string, Function | symbol>} */
    this.byName = new Map()
    /** @type {Map<Function | symbol, string>} */
    this.names = new Map()
    /** names of which two classes were met without being registered @type {Set<string>} */
    this.twice = new Set()
    /** classes that the job vouches for by name @type {Set<Function | symbol>} */
    this.registered = new Set()
  }

  /** @param {string} name @param {Function | symbol} value */
  register(name, value) {
    if (typeof value !== 'function' && typeof value !== 'symbol')
      throw new TypeError(`job.classes: ${name} is no class and no symbol`)
    if (!name) throw new TypeError('job.classes: a class without a name; give it one: job.classes({ Name: theClass })')
    if (constructorsByName.has(name)) throw new TypeError(`job.classes: ${name} is the name of a built-in class`)
    const other = this.byName.get(name)
    if (other !== undefined && other !== value && this.registered.has(other))
      throw new TypeError(
        `job.classes: two classes called ${name}; give one another name: job.classes({ Other: theClass })`,
      )
    const before = this.names.get(value)
    if (before !== undefined) this.byName.delete(before)
    if (other !== undefined) this.names.delete(other)
    this.byName.set(name, value)
    this.names.set(value, name)
    this.registered.add(value)
    this.twice.delete(name)
  }

  /** A class of which the state holds an object at the start. @param {Function} type */
  discover(type) {
    const name = nameOf(type)
    if (!name || this.names.has(type) || this.twice.has(name) || constructorsByName.has(name)) return
    const other = this.byName.get(name)
    if (other === undefined) {
      this.byName.set(name, type)
      this.names.set(type, name)
    } else if (!this.registered.has(other)) {
      this.byName.delete(name)
      this.names.delete(other)
      this.twice.add(name)
    }
  }

  /** Whether there is a class that says itself how its objects are carried. */
  anyCustom() {
    for (const type of this.byName.values()) if (typeof type === 'function' && methodOf(type, 'fromPortal')) return true
    return false
  }

  /** @param {object | null} prototype @returns {PrototypeVerdict} */
  verdict(prototype) {
    if (prototype === null) return { do: 'null' }
    const builtin = namesOfPrototypes.get(prototype)
    if (builtin !== undefined) return { do: 'builtin', name: builtin }
    const hidden = proxyAmong(prototype)
    if (hidden) return hidden
    const type = classOf(prototype)
    const custom = type === null ? 'none' : offers(prototype, type)
    if (custom !== 'both') {
      const broken = this.chainRefusal(prototype)
      if (broken) return broken
    }
    if (type === null) return { do: 'ref' }
    const name = this.names.get(type)
    const shown = name ?? (nameOf(type) || 'a class without a name')
    if (custom === 'half')
      return refuse(shown, 'it has only one of toPortal() and static fromPortal(data, live)', 'give its class both')
    const unread = custom === 'none' ? this.privateRefusal(type, shown) : null
    if (unread) return unread
    if (name === undefined)
      return refuse(
        shown,
        this.twice.has(nameOf(type))
          ? 'there are several classes of that name, so its name does not say which one it is'
          : 'its class cannot be found again by its name',
        `register it before job.state(): job.classes(${nameOf(type) ? shown : '{ Name: theClass }'})`,
        type,
      )
    return { do: 'named', name, custom: custom === 'both' }
  }

  /** @param {Function} type @param {string} shown @returns {PrototypeVerdict | null} */
  privateRefusal(type, shown) {
    const held = privateStateOf(type)
    if (held?.certain)
      return refuse(
        shown,
        `its class keeps private state (${held.what}) that nobody outside can read`,
        'give the class toPortal() and static fromPortal(data, live), or leave it out of the state',
      )
    if (held && !this.registered.has(type))
      return refuse(
        shown,
        `its class seems to keep state for its objects elsewhere (${held.what})`,
        `give the class toPortal() and static fromPortal(data, live); if nothing is lost, say so by job.classes(${shown})`,
      )
    return null
  }

  /**
   * A class whose objects have a part in the engine or in Node that cannot be read, wherever it stands in the chain.
   * @param {object} prototype @returns {PrototypeVerdict | null}
   */
  chainRefusal(prototype) {
    let at = /** @type {object | null} */ (prototype)
    for (let depth = 0; at !== null && depth < MOST_DEPTH; at = getPrototypeOf(at), depth++) {
      if (iteratorPrototypes.has(at))
        return refuse('iterator', 'where an iterator or a generator stands cannot be read', 'keep an index instead')
      const type = classOf(at)
      if (type === null || type === TypedArray || namesOfConstructors.has(type)) continue
      const known = ofThisMachine.get(nameOf(type))
      if (known && !this.names.has(type)) return refuse(nameOf(type), known.reason, known.advice)
      if (isNative(type)) return refuse(nameOf(type), 'it has an inner state that cannot be read', leaveOut)
    }
    return null
  }
}

/** @param {object} prototype @returns {PrototypeVerdict | null} */
const proxyAmong = (prototype) => {
  let at = /** @type {object | null} */ (prototype)
  for (let depth = 0; at !== null && depth < MOST_DEPTH; at = getPrototypeOf(at), depth++)
    if (types.isProxy(at)) return refuse('Proxy', 'a Proxy stands among its prototypes', leaveOut)
  return at === null ? null : refuse('object', 'it has too many prototypes', leaveOut)
}

/** The class whose objects have this prototype. @param {object} prototype @returns {Function | null} */
export const classOf = (prototype) => {
  const type = getOwnPropertyDescriptor(prototype, 'constructor')?.value
  if (typeof type !== 'function' || types.isProxy(type)) return null
  return getOwnPropertyDescriptor(type, 'prototype')?.value === prototype ? type : null
}

/** @param {Function} type @returns {string} */
export const nameOf = (type) => {
  const name = getOwnPropertyDescriptor(type, 'name')?.value
  return typeof name === 'string' ? name : ''
}

/** A method found without running a getter. @param {object | null} owner @param {string} key @returns {Function | null} */
export const methodOf = (owner, key) => {
  for (
    let at = owner, depth = 0;
    at !== null && at !== Function.prototype && depth < MOST_DEPTH;
    at = getPrototypeOf(at), depth++
  ) {
    if (types.isProxy(at)) return null
    const found = getOwnPropertyDescriptor(at, key)
    if (found) return typeof found.value === 'function' ? found.value : null
  }
  return null
}

/** @param {object} prototype @param {Function} type */
const offers = (prototype, type) => {
  const to = methodOf(prototype, 'toPortal') !== null
  const from = methodOf(type, 'fromPortal') !== null
  if (to && from) return 'both'
  return to || from ? 'half' : 'none'
}

const leaveOut = 'leave it out of the state and make it anew when the script starts'

/** @param {string} type @param {string} reason @param {string} advice @param {Function | null} [unknown] @returns {PrototypeVerdict} */
const refuse = (type, reason, advice, unknown = null) => ({ do: 'refuse', type, reason, advice, unknown })

const connection = {
  reason: 'an open connection belongs to this machine',
  advice: 'close it in job.onSuspend and open it in job.onStart, or leave it out of the state',
}
const stream = {
  reason: 'a stream is tied to what it reads or writes on this machine',
  advice: 'close it in job.onSuspend, keep a position instead, or leave it out of the state',
}
const process = {
  reason: 'another process or thread is not part of the state',
  advice: 'end it in job.onSuspend and start it in job.onStart, or leave it out of the state',
}
const timer = {
  reason: 'a timer belongs to this process',
  advice: 'keep when it is due (job.clock()) instead, and set it in job.onStart',
}
const waiting = {
  reason: 'what it waits for cannot be carried',
  advice: 'leave it out of the state; nothing may be under way at a safe point',
}
const weak = { reason: 'what it refers to weakly cannot be listed', advice: leaveOut }

/** Node's and the engine's own classes whose objects belong to this machine or process. */
const ofThisMachine = new Map([
  ...[
    'Socket',
    'Server',
    'TLSSocket',
    'Agent',
    'ClientRequest',
    'IncomingMessage',
    'ServerResponse',
    'WebSocket',
    'EventSource',
    'Http2Session',
    'ClientHttp2Session',
    'ServerHttp2Session',
    'Resolver',
    'TCP',
    'Pipe',
    'TTY',
    'UDP',
  ].map((name) => /** @type {const} */ ([name, connection])),
  ...[
    'Stream',
    'Readable',
    'Writable',
    'Duplex',
    'Transform',
    'PassThrough',
    'ReadStream',
    'WriteStream',
    'ReadableStream',
    'WritableStream',
    'TransformStream',
    'FileHandle',
    'Dir',
    'FSWatcher',
    'StatWatcher',
    'Interface',
  ].map((name) => /** @type {const} */ ([name, stream])),
  ...['ChildProcess', 'Worker', 'MessagePort', 'MessageChannel', 'BroadcastChannel', 'Process'].map(
    (name) => /** @type {const} */ ([name, process]),
  ),
  ...['Timeout', 'Immediate'].map((name) => /** @type {const} */ ([name, timer])),
  ...['Promise', 'AbortController', 'AbortSignal', 'EventTarget'].map((name) => /** @type {const} */ ([name, waiting])),
  ...['WeakRef', 'WeakMap', 'WeakSet', 'FinalizationRegistry'].map((name) => /** @type {const} */ ([name, weak])),
])
