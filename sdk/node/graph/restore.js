// @ts-check
/**
 * Puts a saved graph back, into the objects that the script holds where they are its own (see `origins.js`). Nothing is
 * changed before everything was looked at; what cannot be put back is named.
 */
import {
  bufferLength,
  bufferResize,
  prototypesByName,
  typedArrayBuffer,
  typedArrayLength,
  typedArrayOffset,
  typedArrayTypes,
  types,
  viewBuffer,
  viewLength,
  viewOffset,
} from './builtins.js'
import { methodOf } from './classes.js'
import { fill } from './fill.js'
import { ALIGNMENT, Flag, FormatError, Kind, OUT_OF_BAND, Reader } from './format.js'
import { fits, follow, typeName } from './live.js'
import { make } from './make.js'
import { pathText } from './path.js'
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
   * @param {Uint8Array} graph @param {import('../incoming.js').Memory} buffers the two streams, verified
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
    /** names of classes that were named already @type {Set<string>} */
    this.missing = new Set()
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
    /** places at the start that records call by number @type {{ origin: Origin, candidate: any }[]} */
    this.places = []
    /** entries of the script's own maps and sets, by number @type {Map<object, unknown[]>} */
    this.entries = new Map()
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
    this.places.push({ origin: this.origins.root, candidate: root })
    const unknown = this.scan()
    this.makeViews()
    for (const name of unknown)
      this.refusals.add(() => 'state', name, 'it is not known here by this name', registerAdvice(name))
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
    if (this.bufferAt !== this.buffers.total) throw new FormatError('the buffers have another length')
    return records.unknown
  }

  /** @param {number} number @param {Record_} record */
  place(number, record) {
    const name =
      record.kind === Kind.custom ? record.name : record.prototype.do === 'named' ? record.prototype.name : null
    if (name !== null && typeof this.classes.byName.get(name) !== 'function' && !this.missing.has(name)) {
      this.missing.add(name)
      this.refuse(number, name, 'its class is not known here by this name', registerAdvice(name))
    }
    const { origin, candidate } = this.find(number, record)
    this.originOf.push(origin)
    const usable = number === 0 || (candidate !== undefined && fits(this, number, record, candidate))
    this.live.push(usable && record.kind !== Kind.custom)
    if (record.kind === Kind.arrayBuffer) this.placeBuffer(number, record, usable ? candidate : undefined)
    else if (usable && record.kind !== Kind.custom) this.objects.push(candidate)
    else this.objects.push(make(this, number, record, record.kind === Kind.custom && usable ? candidate : undefined))
    if (record.kind === Kind.typedArray || record.kind === Kind.dataView)
      this.views.push({ number, record, candidate: usable ? candidate : undefined })
  }

  /**
   * Where the object stood at the start, and what stands there now.
   * @param {number} number @param {Record_} record @returns {{ origin: Origin | null, candidate: any }}
   */
  find(number, record) {
    if (number === 0) return { origin: this.origins.root, candidate: this.root }
    if (record.flags & Flag.fresh) return { origin: null, candidate: undefined }
    if (record.moved) return this.movedFrom(record.moved)
    const parent = /** @type {number} */ (this.parents[number])
    const step = /** @type {PathStep} */ (this.steps[number])
    return {
      origin: this.originOf[parent]?.child(step) ?? null,
      candidate: this.live[parent] ? objectOnly(follow(this.objects[parent], step, this.entries)) : undefined,
    }
  }

  /** @param {{ from: number, steps: PathStep[] }} moved */
  movedFrom({ from, steps }) {
    let place = this.places[from]
    if (!place) throw new FormatError('a place that was not described')
    for (const step of steps) {
      place = { origin: place.origin.child(step), candidate: objectOnly(follow(place.candidate, step, this.entries)) }
      this.places.push(place)
    }
    return place
  }

  /** @param {number} number @param {Record_} record @param {ArrayBuffer | undefined} live the script's own, if it has one there */
  placeBuffer(number, record, live) {
    const bytes = record.bytes ?? this.outOfBand(record.length)
    const own = bytes.byteLength === bytes.buffer.byteLength && record.length >= OUT_OF_BAND && record.maxLength < 0
    // memory that it was received into is its memory, unless the script holds another
    const buffer = live ?? (own && !this.taken.has(bytes.buffer) ? bytes.buffer : make(this, number, record, undefined))
    this.taken.set(buffer, number)
    this.objects.push(buffer)
    if (bytes.buffer !== buffer) this.memory.push({ buffer, bytes })
  }

  /** The memory of the next large buffer. @param {number} length */
  outOfBand(length) {
    const start = Math.ceil(this.bufferAt / ALIGNMENT) * ALIGNMENT
    const bytes = this.buffers.at(start, length)
    this.bufferAt = start + length
    return bytes
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

/** @param {unknown} found */
const objectOnly = (found) => (typeof found === 'object' && found !== null ? found : undefined)

/** @param {string} name */
const registerAdvice = (name) =>
  `register it before job.state(): job.classes(${/^[\w$]+$/.test(name) ? name : `{ ${JSON.stringify(name)}: … }`})`
