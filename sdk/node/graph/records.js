// @ts-check
/** Reads records back: what stands in each, with every value handed to the caller's `resolve` where it is an object. */
import { constructorsByName, wellKnownByName } from './builtins.js'
import { ArrayMode, Flag, FormatError, Kind, OUT_OF_BAND, Prototype, Tag } from './format.js'
import { bufferStep, dataStep, prototypeStep, Step } from './path.js'

/**
 * @typedef {import('./path.js').PathStep} PathStep
 * @typedef {{ key: PropertyKey, value: unknown, attributes: number }} Property
 * @typedef {{
 *   kind: number, flags: number, moved: { from: number, steps: PathStep[] } | null,
 *   prototype: { do: 'usual' | 'null' } | { do: 'builtin' | 'named', name: string } | { do: 'ref', value: unknown },
 *   name: string, length: number, maxLength: number, offset: number, value: unknown, fixed: boolean,
 *   bytes: Uint8Array | null, keys: unknown[], items: unknown[], attributes: number[] | null, indices: number[] | null,
 *   properties: Property[]
 * }} Record_
 */

/** In `items`: no element here. */
export const HOLE = Symbol('hole')

const STEP_KINDS = new Set(['key', 'at', 'member', 'prototype', 'buffer', 'data'])

export class Records {
  /** @param {import('./format.js').Reader} reader @param {import('./classes.js').Classes} classes @param {(number: number, step: PathStep) => unknown} resolve */
  constructor(reader, classes, resolve) {
    this.reader = reader
    this.classes = classes
    this.resolve = resolve
    /** @type {PropertyKey[][]} */
    this.shapes = []
    /** where a shape is described, and where that ends: a record may be read again @type {Map<number, number>} */
    this.described = new Map()
    /** names of classes and symbols that are not known here @type {Set<string>} */
    this.unknown = new Set()
  }

  /** @param {PathStep} step @param {number} [tag] @returns {unknown} */
  value(step, tag = this.reader.byte()) {
    const { reader } = this
    switch (tag) {
      case Tag.undefined:
        return undefined
      case Tag.null:
        return null
      case Tag.true:
        return true
      case Tag.false:
        return false
      case Tag.integer: {
        const count = reader.count()
        return count % 2 === 1 ? -(count + 1) / 2 : count / 2
      }
      case Tag.double:
        return reader.double()
      case Tag.utf8:
      case Tag.utf16:
        return reader.string(tag)
      case Tag.bigint: {
        const digits = reader.text()
        if (!/^-?[0-9a-f]+$/.test(digits)) throw new FormatError('a bigint has other digits')
        return digits[0] === '-' ? -BigInt(`0x${digits.slice(1)}`) : BigInt(`0x${digits}`)
      }
      case Tag.wellKnownSymbol: {
        const name = reader.text()
        const symbol = wellKnownByName.get(name)
        if (symbol === undefined) this.unknown.add(`Symbol.${name}`)
        return symbol
      }
      case Tag.symbolFor:
        return Symbol.for(reader.text())
      case Tag.namedSymbol:
      case Tag.namedClass: {
        const name = reader.text()
        const found = this.classes.byName.get(name)
        if (typeof found !== (tag === Tag.namedClass ? 'function' : 'symbol')) this.unknown.add(name)
        return found
      }
      case Tag.builtinClass: {
        const name = reader.text()
        if (!constructorsByName.has(name)) this.unknown.add(name)
        return constructorsByName.get(name)
      }
      case Tag.ref:
        return this.resolve(reader.count(), step)
      case Tag.hole:
        return HOLE
      default:
        throw new FormatError(`a value of an unknown kind (${tag})`)
    }
  }

  /** @returns {Record_} */
  next() {
    const { reader } = this
    const kind = reader.byte()
    const flags = reader.byte()
    /** @type {Record_} */
    const record = {
      kind,
      flags,
      moved: flags & Flag.moved ? this.path() : null,
      prototype: { do: 'usual' },
      name: '',
      length: 0,
      maxLength: 0,
      offset: 0,
      value: undefined,
      fixed: false,
      bytes: null,
      keys: nothing,
      items: nothing,
      attributes: null,
      indices: null,
      properties: noProperties,
    }
    if (flags & Flag.prototype) record.prototype = this.prototype()
    this.body(record)
    if (flags & Flag.properties) record.properties = flags & Flag.described ? this.each() : this.usual()
    return record
  }

  path() {
    const from = this.reader.count()
    const steps = []
    for (let left = this.reader.countOfBytes(); left > 0; left--) {
      if (this.reader.byte() === 0) {
        steps.push(/** @type {PathStep} */ (this.value('')))
        continue
      }
      const kind = this.reader.text()
      if (!STEP_KINDS.has(kind)) throw new FormatError('a path goes an unknown way')
      const byNumber = this.reader.byte() === 1
      steps.push(new Step(/** @type {any} */ (kind), this.value(''), byNumber))
    }
    return { from, steps }
  }

  /** @returns {Record_['prototype']} */
  prototype() {
    switch (this.reader.byte()) {
      case Prototype.null:
        return { do: 'null' }
      case Prototype.builtin:
        return { do: 'builtin', name: this.reader.text() }
      case Prototype.named:
        return { do: 'named', name: this.reader.text() }
      case Prototype.ref:
        return { do: 'ref', value: this.value(prototypeStep) }
      default:
        throw new FormatError('a prototype of an unknown kind')
    }
  }

  /** @param {Record_} record */
  body(record) {
    const { reader } = this
    switch (record.kind) {
      case Kind.object:
      case Kind.error:
        return
      case Kind.array:
        return this.array(record)
      case Kind.map: {
        record.length = reader.countOfBytes()
        record.keys = []
        record.items = []
        for (let at = 0; at < record.length; at++) {
          const tag = reader.byte()
          const key = this.value(new Step('key', at), tag)
          const byNumber = tag === Tag.ref || tag === Tag.namedClass || tag === Tag.builtinClass
          record.keys.push(key)
          record.items.push(this.value(new Step('at', byNumber ? at : key, byNumber)))
        }
        return
      }
      case Kind.set:
        record.length = reader.countOfBytes()
        record.items = []
        for (let at = 0; at < record.length; at++) record.items.push(this.value(new Step('member', at)))
        return
      case Kind.date:
        record.value = reader.double()
        return
      case Kind.regexp:
        record.name = reader.text()
        record.bytes = null
        record.keys = [reader.text()]
        record.fixed = reader.byte() === 0
        record.value = this.value('lastIndex')
        return
      case Kind.boxed:
        record.value = this.value(dataStep)
        return
      case Kind.arrayBuffer:
        record.length = reader.count()
        record.maxLength = reader.count() - 1
        if (record.length < OUT_OF_BAND) record.bytes = reader.bytes(record.length)
        return
      case Kind.typedArray:
        record.name = reader.text()
        this.view(record)
        return
      case Kind.dataView:
        this.view(record)
        return
      case Kind.url:
        record.name = reader.text()
        return
      case Kind.pooled:
        record.length = reader.countOfBytes()
        record.bytes = reader.bytes(record.length)
        return
      case Kind.custom:
        record.name = reader.text()
        record.value = this.value(dataStep)
        return
      default:
        throw new FormatError(`an object of an unknown kind (${record.kind})`)
    }
  }

  /** @param {Record_} record */
  view(record) {
    record.value = this.value(bufferStep)
    record.offset = this.reader.count()
    record.length = this.reader.count()
  }

  /** @param {Record_} record */
  array(record) {
    const { reader } = this
    const modeAndFixed = reader.byte()
    const mode = modeAndFixed >> 1
    record.fixed = (modeAndFixed & 1) === 1
    record.length = reader.count()
    if (record.length > 4294967295) throw new FormatError('an array is longer than arrays can be')
    record.items = []
    if (mode === ArrayMode.doubles) {
      reader.need(record.length * 8)
      for (let at = 0; at < record.length; at++) record.items.push(reader.double())
      return
    }
    const count = mode === ArrayMode.sparse ? reader.countOfBytes() : record.length
    reader.need(count)
    if (mode !== ArrayMode.values) record.attributes = []
    if (mode === ArrayMode.sparse) record.indices = []
    for (let at = 0; at < count; at++) {
      let index = at
      if (record.indices) {
        index = reader.count()
        record.indices.push(index)
      }
      const value = this.value(index)
      record.items.push(value)
      if (record.attributes) record.attributes.push(value === HOLE ? 0 : reader.byte())
    }
  }

  /** @returns {Property[]} */
  usual() {
    const { reader } = this
    const number = reader.count()
    let keys = this.shapes[number]
    if (keys === undefined) {
      if (number !== this.shapes.length) throw new FormatError('a shape that was not described')
      const start = reader.position
      keys = []
      for (let left = reader.countOfBytes(); left > 0; left--) keys.push(this.key())
      this.shapes.push(keys)
      this.described.set(start, reader.position)
    } else reader.position = this.described.get(reader.position) ?? reader.position
    return keys.map((key) => ({ key, value: this.value(/** @type {PathStep} */ (key)), attributes: 7 }))
  }

  /** @returns {Property[]} */
  each() {
    const properties = []
    for (let left = this.reader.countOfBytes(); left > 0; left--) {
      const key = this.key()
      const attributes = this.reader.byte()
      properties.push({ key, value: this.value(/** @type {PathStep} */ (key)), attributes })
    }
    return properties
  }

  /** @returns {PropertyKey} */
  key() {
    const key = this.value('')
    // a symbol that is not known here is named as such; until then it needs a place
    return typeof key === 'string' || typeof key === 'symbol' ? key : Symbol('unknown')
  }
}

/** @type {unknown[]} */
const nothing = []
/** @type {Property[]} */
const noProperties = []
