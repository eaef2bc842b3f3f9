/**
 * Puts a saved graph back, into the objects that the script holds where they are its own (see `origins.js`). Nothing is
 * changed before everything was looked at; what cannot be put back is named.
 */
import {
  bufferLength,
  bufferMaxLength,
  bufferResizable,
  bufferResize,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  isArray,
  mapForEach,
  mapGet,
  ownKeys,
  prototypesByName,
  regexpFlags,
  regexpSource,
  setForEach,
  typedArrayBuffer,
  typedArrayLength,
  typedArrayName,
  typedArrayOffset,
  typedArrayTypes,
  types,
  unbox,
  viewBuffer,
  viewLength,
  viewOffset,
} from './builtins.js'
import { classOf, methodOf, nameOf } from './classes.js'
import { fill } from './fill.js'
import { ALIGNMENT, Flag, FormatError, Kind, kindNames, OUT_OF_BAND, Reader } from './format.js'
import { kindOf } from './kind.js'
import { pathText, Step } from './path.js'
import { Records } from './records.js'
import { Refusals } from './refusals.js'
import { usualPrototype } from './walk.js'

/**
 * @typedef {import('./path.js').PathStep} PathStep
 * @typedef {import('./records.js').Record_} Record_
 * @typedef {import('./origins.js').Origin} Origin
 */

export class Restore {
  /**
   * @param {Uint8Array} graph @param {Uint8Array} buffers the two streams, verified
   * @param {{ objects: number, customs: number }} counts
   * @param {import('./classes.js').Classes} classes @param {import('./origins.js').Origins} origins
   */
  constructor(graph, buffers, counts, classes, origins) {
    this.graph = graph
    this.buffers = buffers
    this.counts = counts
    this.classes = classes
    this.origins = origins
    this.refusals = new Refusals()
    /** @type {any[]} */
    this.objects = []
    /** whether the object is one that the script holds @type {boolean[]} */
    this.live = []
    /** @type {number[]} */
    this.parents = [-1]
    /** @type {PathStep[]} */
    this.steps = ['']
    /** @type {(Origin | null)[]} */
    this.originOf = []
    /** live objects that have found their content @type {Map<object, number>} */
    this.taken = new Map()
    /** @type {{ number: number, record: Record_, candidate: any }[]} */
    this.views = []
    /** where the next buffer begins in the stream `buffers` */
    this.bufferAt = 0
    /** @type {{ buffer: ArrayBuffer, bytes: Uint8Array }[]} */
    this.memory = []
    /** @type {number[][] | null} */
    this.edges = counts.customs > 0 ? [] : null
    this.current = 0
  }

  /** @param {object} root the script's own state */
  run(root) {
    this.root = root
    const unknown = this.scan()
    this.makeViews()
    for (const name of unknown)
      this.refusals.add(
        () => 'state',
        name,
        'it is not known here by this name',
        `register it before job.state(): job.classes(${name})`,
      )
    if (this.refusals.any) return
    for (const { buffer, bytes } of this.memory) {
      if (bufferLength(buffer) !== bytes.length) bufferResize(buffer, bytes.length)
      new Uint8Array(buffer).set(bytes)
    }
    this.fillAll()
    if (this.refusals.any) return
    for (const [number, origin] of this.originOf.entries()) this.origins.note(this.objects[number], origin)
  }

  /** @param {number} number */
  pathOf(number) {
    const steps = []
    for (let at = number; at > 0; at = /** @type {number} */ (this.parents[at]))
      steps.push(/** @type {PathStep} */ (this.steps[at]))
    return pathText(steps.toReversed())
  }

  /** @param {number} number @param {string} type @param {string} reason @param {string} advice */
  refuse(number, type, reason, advice) {
    this.refusals.add(() => this.pathOf(number), type, reason, advice)
  }

  /** Finds or makes the object of every record. */
  scan() {
    const reader = new Reader(this.graph)
    const records = new Records(reader, this.classes, (number, step) => {
      if (number > this.parents.length || number >= this.counts.objects) throw new FormatError('an object out of turn')
      if (number === this.parents.length) {
        this.parents.push(this.current)
        this.steps.push(step)
      }
      if (this.edges) (this.edges[this.current] ??= []).push(number)
      // while records are only scanned, a reference stands for the object
      return { number }
    })
    for (this.current = 0; this.current < this.counts.objects; this.current++) {
      if (this.current >= this.parents.length) throw new FormatError('an object that nothing refers to')
      this.place(this.current, records.next())
    }
    if (!reader.atEnd) throw new FormatError('there is more than was said')
    if (this.bufferAt !== this.buffers.length) throw new FormatError('the buffers have another length')
    return records.unknown
  }

  /** @param {number} number @param {Record_} record */
  place(number, record) {
    const origin = this.findOrigin(number, record)
    this.originOf.push(origin)
    const candidate = number === 0 ? this.root : origin ? this.candidate(number, record) : undefined
    const usable = number === 0 || (candidate !== undefined && this.fits(number, record, candidate))
    this.live.push(usable && record.kind !== Kind.custom)
    if (usable && record.kind !== Kind.custom) this.objects.push(candidate)
    else this.objects.push(this.make(number, record, record.kind === Kind.custom && usable ? candidate : undefined))
    if (record.kind === Kind.typedArray || record.kind === Kind.dataView)
      this.views.push({ number, record, candidate: usable ? candidate : undefined })
    if (record.kind === Kind.arrayBuffer) this.note(record, this.objects[number])
  }

  /** @param {number} number @param {Record_} record @returns {Origin | null} */
  findOrigin(number, record) {
    if (number === 0) return this.origins.root
    if (record.flags & Flag.fresh) return null
    if (record.moved) {
      let origin = this.origins.root
      for (const step of record.moved) origin = origin.child(step)
      return origin
    }
    const parent = this.originOf[/** @type {number} */ (this.parents[number])]
    return parent ? parent.child(/** @type {PathStep} */ (this.steps[number])) : null
  }

  /** The script's own object for a record, if there is an object in its place. @param {number} number @param {Record_} record */
  candidate(number, record) {
    const parent = /** @type {number} */ (this.parents[number])
    const found = record.moved
      ? record.moved.reduce(follow, this.root)
      : this.live[parent]
        ? follow(this.objects[parent], /** @type {PathStep} */ (this.steps[number]))
        : undefined
    return typeof found === 'object' && found !== null ? found : undefined
  }

  /** Whether the content can go into the script's own object; if it must and cannot, that is named. @param {number} number @param {Record_} record @param {any} candidate */
  fits(number, record, candidate) {
    const no = (/** @type {string} */ reason) => {
      this.refuse(number, typeName(record), reason, 'make it the same before job.state() as it was when the job began')
      return false
    }
    const other = this.taken.get(candidate)
    if (other !== undefined) return no(`here it is the same object as ${this.pathOf(other)}, and was another`)
    this.taken.set(candidate, number)
    const kind = kindOf(candidate)
    if (record.kind === Kind.custom) {
      const type = this.classes.byName.get(record.name)
      const same = classOf(getPrototypeOf(candidate) ?? {}) === type
      return same || no(`the script has a ${shownType(candidate)} there`)
    }
    if (record.kind === Kind.pooled) {
      if (
        kind !== Kind.typedArray ||
        getPrototypeOf(candidate) !== Buffer.prototype ||
        typedArrayLength(candidate) !== record.length
      )
        return no(`the script has a ${shownType(candidate)} there`)
      return true
    }
    if (kind !== record.kind) return no(`the script has a ${shownType(candidate)} there`)
    switch (kind) {
      case Kind.typedArray:
        if (typedArrayName(candidate) !== record.name || typedArrayLength(candidate) !== record.length)
          return no(`the script has a ${shownType(candidate)} there`)
        return true
      case Kind.arrayBuffer:
        if (
          bufferResizable(candidate)
            ? bufferMaxLength(candidate) !== record.maxLength
            : record.maxLength >= 0 || bufferLength(candidate) !== record.length
        )
          return no(`the script has an ArrayBuffer of ${bufferLength(candidate)} bytes there`)
        return true
      case Kind.boxed:
        return (
          Object.is(unbox(candidate), record.value) ||
          no('a boxed primitive cannot be changed, and the script has another there')
        )
      case Kind.regexp:
        return (
          (regexpSource(candidate) === record.name && regexpFlags(candidate) === record.keys[0]) ||
          no(`the script has ${regexpSource(candidate)} with flags "${regexpFlags(candidate)}" there`)
        )
      default:
        return true
    }
  }

  /** An object of its kind, empty. @param {number} number @param {Record_} record @param {unknown} liveCustom @returns {any} */
  make(number, record, liveCustom) {
    switch (record.kind) {
      case Kind.object:
        return {}
      case Kind.array:
        return []
      case Kind.map:
        return new Map()
      case Kind.set:
        return new Set()
      case Kind.date:
        return new Date(0)
      case Kind.regexp:
        try {
          return new RegExp(record.name, String(record.keys[0]))
        } catch {
          this.refuse(number, 'RegExp', 'this Node does not know it', 'use a newer Node')
          return /none/
        }
      case Kind.error: {
        const error = new Error()
        for (const key of ownKeys(error)) Reflect.deleteProperty(error, key)
        return error
      }
      case Kind.boxed:
        return Object(record.value)
      case Kind.arrayBuffer:
        return record.maxLength >= 0
          ? new ArrayBuffer(record.length, { maxByteLength: record.maxLength })
          : new ArrayBuffer(record.length)
      case Kind.url:
        return new URL(record.name)
      case Kind.pooled:
        return Buffer.alloc(record.length)
      case Kind.custom:
        return liveCustom
      default:
        // views are made when all memory is there
        return undefined
    }
  }

  /** @param {Record_} record @param {ArrayBuffer} buffer */
  note(record, buffer) {
    let bytes = record.bytes
    if (record.length >= OUT_OF_BAND) {
      const start = Math.ceil(this.bufferAt / ALIGNMENT) * ALIGNMENT
      if (start + record.length > this.buffers.length) throw new FormatError('the buffers are too short')
      bytes = this.buffers.subarray(start, start + record.length)
      this.bufferAt = start + record.length
    }
    this.memory.push({ buffer, bytes: /** @type {Uint8Array} */ (bytes) })
  }

  makeViews() {
    for (const { number, record, candidate } of this.views) {
      const base = this.objects[/** @type {any} */ (record.value)?.number ?? -1]
      if (!types.isArrayBuffer(base)) throw new FormatError('a view without memory')
      if (candidate !== undefined) {
        const typed = record.kind === Kind.typedArray
        const same =
          (typed ? typedArrayBuffer(candidate) : viewBuffer(candidate)) === base &&
          (typed ? typedArrayOffset(candidate) : viewOffset(candidate)) === record.offset &&
          (typed ? typedArrayLength(candidate) : viewLength(candidate)) === record.length
        if (!same)
          this.refuse(
            number,
            typeName(record),
            'here it is a view on other memory than it was',
            'make it the same before job.state() as it was when the job began',
          )
        continue
      }
      if (record.kind === Kind.dataView) this.objects[number] = new DataView(base, record.offset, record.length)
      else {
        const type = typedArrayTypes.get(record.name)
        if (type) this.objects[number] = new type(base, record.offset, record.length)
        else this.refuse(number, record.name, 'this Node does not know it', 'use a newer Node')
      }
    }
  }

  /** Gives every object its content; what `fromPortal` rebuilds comes after what it is rebuilt from. */
  fillAll() {
    const reader = new Reader(this.graph)
    const offsets = []
    const records = new Records(reader, this.classes, (number) => this.objects[number])
    if (!this.edges) {
      for (let number = 0; number < this.counts.objects; number++) fill(this, number, records.next())
      return
    }
    // shapes are described where they are first used, so all records are read once in order before any out of order
    for (let number = 0; number < this.counts.objects; number++) {
      offsets.push(reader.position)
      records.next()
    }
    for (const number of this.order(this.edges)) {
      reader.position = /** @type {number} */ (offsets[number])
      fill(this, number, records.next())
    }
  }

  /** Every object after those that it refers to, as far as there are no cycles. @param {number[][]} edges */
  order(edges) {
    const order = []
    const seen = new Uint8Array(this.counts.objects)
    const next = new Int32Array(this.counts.objects)
    const stack = [0]
    seen[0] = 1
    while (stack.length > 0) {
      const node = /** @type {number} */ (stack.at(-1))
      const targets = edges[node] ?? []
      const at = /** @type {number} */ (next[node])
      if (at === targets.length) {
        order.push(node)
        stack.pop()
        continue
      }
      next[node] = at + 1
      const target = /** @type {number} */ (targets[at])
      if (!seen[target]) {
        seen[target] = 1
        stack.push(target)
      }
    }
    return order
  }

  /** @param {Record_} record @returns {object | null} */
  prototypeOf(record) {
    const { prototype } = record
    switch (prototype.do) {
      case 'null':
        return null
      case 'ref':
        return /** @type {object} */ (prototype.value)
      case 'builtin': {
        const found = prototypesByName.get(prototype.name)
        if (!found) throw new FormatError(`no built-in class ${prototype.name}`)
        return found
      }
      case 'named': {
        const type = this.classes.byName.get(prototype.name)
        return typeof type === 'function' ? type.prototype : null
      }
      default: {
        const name = record.kind === Kind.typedArray ? record.name : usualPrototype[record.kind]
        return prototypesByName.get(name ?? 'Object') ?? Object.prototype
      }
    }
  }

  /** @param {number} number @param {Record_} record */
  rebuild(number, record) {
    const type = this.classes.byName.get(record.name)
    const fromPortal = typeof type === 'function' ? methodOf(type, 'fromPortal') : null
    if (!fromPortal)
      return this.refuse(
        number,
        record.name,
        'its class has no static fromPortal here',
        'give the class fromPortal(data, live)',
      )
    const live = this.objects[number]
    let made
    try {
      made = fromPortal.call(type, record.value, live)
    } catch (error) {
      return this.refuse(
        number,
        record.name,
        `its fromPortal() failed: ${error instanceof Error ? error.message : String(error)}`,
        'correct fromPortal()',
      )
    }
    if (typeof made !== 'object' || made === null)
      return this.refuse(number, record.name, 'its fromPortal() gave no object', 'return the object from fromPortal()')
    if (live !== undefined && made !== live)
      return this.refuse(
        number,
        record.name,
        'the script holds this object, and fromPortal() gave another',
        'fill and return the second argument of fromPortal(data, live) when it is given',
      )
    this.objects[number] = made
  }
}

/** One step on from a live object, without running anything of the job's. @param {any} object @param {PathStep} step @returns {any} */
const follow = (object, step) => {
  if (typeof object !== 'object' || object === null) return undefined
  const kind = kindOf(object)
  if (typeof kind !== 'number') return undefined
  if (!(step instanceof Step)) return getOwnPropertyDescriptor(object, step)?.value
  switch (step.kind) {
    case 'prototype':
      return getPrototypeOf(object) ?? undefined
    case 'buffer':
      return kind === Kind.typedArray
        ? typedArrayBuffer(object)
        : kind === Kind.dataView
          ? viewBuffer(object)
          : undefined
    case 'at':
      if (kind !== Kind.map) return undefined
      return step.byNumber ? entry(object, step.value)?.[1] : mapGet(object, step.value)
    case 'key':
      return kind === Kind.map ? entry(object, step.value)?.[0] : undefined
    case 'member': {
      if (kind !== Kind.set) return undefined
      let at = 0
      let found
      setForEach(object, (/** @type {unknown} */ member) => {
        if (at++ === step.value) found = member
      })
      return found
    }
    default:
      return undefined
  }
}

/** @param {object} map @param {unknown} number @returns {[unknown, unknown] | undefined} */
const entry = (map, number) => {
  let at = 0
  /** @type {[unknown, unknown] | undefined} */
  let found
  mapForEach(map, (/** @type {unknown} */ value, /** @type {unknown} */ key) => {
    if (at++ === number) found = [key, value]
  })
  return found
}

/** @param {Record_} record */
const typeName = (record) => {
  if (record.prototype.do === 'named' || record.prototype.do === 'builtin') return record.prototype.name
  if (record.kind === Kind.typedArray) return `${record.name}(${record.length})`
  if (record.kind === Kind.arrayBuffer) return `ArrayBuffer(${record.length})`
  return record.name && record.kind === Kind.custom ? record.name : (kindNames[record.kind] ?? 'object')
}

/** @param {any} value */
const shownType = (value) => {
  const kind = kindOf(value)
  if (typeof kind !== 'number') return kind.type
  if (kind === Kind.typedArray) return `${typedArrayName(value)}(${typedArrayLength(value)})`
  if (isArray(value)) return 'array'
  const prototype = getPrototypeOf(value)
  const type = prototype && classOf(prototype)
  return (type && nameOf(type)) || (kindNames[kind] ?? 'object')
}
