/**
 * The walker: looks at every object of the state once, breadth first and without recursion, runs none of the job's code
 * but `toPortal`, and writes each down or names it as one that cannot be carried.
 */
import {
  bufferLength,
  bufferMaxLength,
  bufferResizable,
  dateTime,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  isExtensible,
  mapForEach,
  mapSize,
  namesOfConstructors,
  ownKeys,
  prototypesByName,
  regexpFlags,
  regexpSource,
  setForEach,
  setSize,
  stackGetter,
  typedArrayBuffer,
  typedArrayLength,
  typedArrayName,
  typedArrayOffset,
  types,
  unbox,
  urlHref,
  viewBuffer,
  viewLength,
  viewOffset,
  wellKnownSymbols,
} from './builtins.js'
import { classOf, methodOf, nameOf } from './classes.js'
import {
  ALIGNMENT,
  ArrayMode,
  Attribute,
  Flag,
  Kind,
  kindNames,
  OUT_OF_BAND,
  Prototype,
  Tag,
  Writer,
} from './format.js'
import { kindOf, refusals } from './kind.js'
import { hasOnlyElements } from './extras.js'
import { Origin } from './origins.js'
import { bufferStep, dataStep, pathText, prototypeStep, sameStep, Step } from './path.js'
import { Refusals } from './refusals.js'
import { inCycle } from './cycles.js'

/**
 * @typedef {import('./path.js').PathStep} PathStep
 * @typedef {import('./classes.js').PrototypeVerdict} PrototypeVerdict
 * @typedef {{ offset: number, bytes: Uint8Array, number: number }} OutOfBand a buffer and where it begins in the stream `buffers`
 */

/** The prototype that an object of a kind has when nobody changed it, by name. @type {Record<number, string>} */
export const usualPrototype = {
  [Kind.object]: 'Object',
  [Kind.array]: 'Array',
  [Kind.map]: 'Map',
  [Kind.set]: 'Set',
  [Kind.date]: 'Date',
  [Kind.regexp]: 'RegExp',
  [Kind.error]: 'Error',
  [Kind.arrayBuffer]: 'ArrayBuffer',
  [Kind.dataView]: 'DataView',
  [Kind.url]: 'URL',
  [Kind.pooled]: 'Buffer',
}

class Shape {
  constructor() {
    /** @type {Map<PropertyKey, Shape>} */
    this.next = new Map()
    this.number = -1
  }

  /** The shape with one key more. @param {PropertyKey} key */
  with(key) {
    let next = this.next.get(key)
    if (next === undefined) this.next.set(key, (next = new Shape()))
    return next
  }
}

export class Walk {
  /**
   * @param {import('./classes.js').Classes} classes
   * @param {import('./origins.js').Origins} origins
   * @param {{ customs?: Map<object, unknown>, discover?: boolean }} [options] `customs`: what `toPortal` gave in a walk
   *   before; `discover`: note origins and classes of a state at its start, refuse nothing
   */
  constructor(classes, origins, options = {}) {
    this.classes = classes
    this.origins = origins
    this.discover = options.discover ?? false
    this.customs = options.customs ?? new Map()
    this.refusals = new Refusals()
    /** @type {object[]} */
    this.objects = []
    /** @type {Map<object, number>} */
    this.numbers = new Map()
    /** @type {number[]} */
    this.parents = []
    /** @type {PathStep[]} */
    this.steps = []
    /** the top-level value under which each object was first met, as an index into `tops` @type {number[]} */
    this.top = []
    /** @type {{ step: PathStep, kind: string, bytes: number }[]} */
    this.tops = []
    /** @type {(Origin | null)[]} */
    this.originOf = []
    /** @type {Map<object | null, PrototypeVerdict>} */
    this.verdicts = new Map()
    this.shapes = new Shape()
    this.shapeCount = 0
    /** @type {OutOfBand[]} */
    this.buffers = []
    this.bufferBytes = 0
    /** who refers to whom, for cycles through `toPortal` @type {number[][] | null} */
    this.edges = this.discover ? null : []
    this.customNumbers = /** @type {number[]} */ ([])
    /** memory of Node's pool seen as one Buffer's own, and memory seen as a whole @type {Map<object, { number: number, from: number, to: number }[]>} */
    this.pooled = new Map()
    this.current = 0
  }

  /**
   * Walks everything that is reached from `root`. @param {object} root @param {(bytes: Uint8Array) => void} flush gets
   * the graph's bytes @returns {number} how many bytes
   */
  run(root, flush) {
    this.out = new Writer(flush)
    this.first(root, null, -1, '')
    for (this.current = 0; this.current < this.objects.length; this.current++) {
      const before = this.out.total
      this.record(/** @type {object} */ (this.objects[this.current]), this.current)
      const top = this.tops[/** @type {number} */ (this.top[this.current])]
      if (top) top.bytes += this.out.total - before
    }
    this.out.end()
    if (this.customNumbers.length > 0 && this.edges) this.refuseCycles(this.edges)
    return this.out.total
  }

  /** How much the whole stream `buffers` is. */
  get buffersLength() {
    return this.bufferBytes
  }

  /** @param {object} object @param {Origin | null} origin @param {number} parent @param {PathStep} step */
  first(object, origin, parent, step) {
    const number = this.objects.push(object) - 1
    this.numbers.set(object, number)
    this.parents.push(parent)
    this.steps.push(step)
    if (parent < 0) {
      this.originOf.push(this.origins.root)
      this.origins.of.set(object, this.origins.root)
      this.top.push(-1)
    } else {
      this.originOf.push(origin)
      this.top.push(parent === 0 ? this.tops.length - 1 : /** @type {number} */ (this.top[parent]))
    }
    return number
  }

  /** @param {number} number @param {PathStep} [last] @returns {PathStep[]} */
  pathOf(number, last) {
    /** @type {PathStep[]} */
    const steps = last === undefined ? [] : [last]
    for (let at = number; at > 0; at = /** @type {number} */ (this.parents[at]))
      steps.push(/** @type {PathStep} */ (this.steps[at]))
    return steps.toReversed()
  }

  /** @param {PathStep[]} path @param {{ type: string, reason: string, advice: string }} refusal */
  refuse(path, { type, reason, advice }) {
    if (!this.discover) this.refusals.add(() => pathText(path), type, reason, advice)
  }

  /** @param {number} number @param {{ type: string, reason: string, advice: string }} refusal */
  refuseObject(number, refusal) {
    if (!this.discover)
      this.refusals.add(() => pathText(this.pathOf(number)), refusal.type, refusal.reason, refusal.advice)
  }

  /** Writes a value; an object met for the first time gets its number and its turn. @param {unknown} value @param {PathStep} step */
  value(value, step) {
    const out = /** @type {Writer} */ (this.out)
    switch (typeof value) {
      case 'number':
        if ((value | 0) === value && !Object.is(value, -0)) {
          out.byte(Tag.integer)
          out.count(value < 0 ? -value * 2 - 1 : value * 2)
        } else {
          out.byte(Tag.double)
          out.double(value)
        }
        return
      case 'string':
        out.string(value)
        return
      case 'object':
        if (value === null) out.byte(Tag.null)
        else this.reference(value, step)
        return
      case 'boolean':
        out.byte(value ? Tag.true : Tag.false)
        return
      case 'undefined':
        out.byte(Tag.undefined)
        return
      case 'bigint':
        out.byte(Tag.bigint)
        out.string(value.toString(16))
        return
      case 'symbol':
        this.symbol(value, step)
        return
      default:
        this.callable(/** @type {Function} */ (value), step)
    }
  }

  /** @param {object} value @param {PathStep} step */
  reference(value, step) {
    const out = /** @type {Writer} */ (this.out)
    let number = this.numbers.get(value)
    if (number === undefined) {
      number = this.first(value, null, this.current, step)
      const parentOrigin = this.originOf[this.current] ?? null
      if (this.discover) {
        const known = this.origins.of.get(value)
        const origin = known ?? (parentOrigin ? new Origin(parentOrigin, step) : null)
        if (origin && !known) this.origins.of.set(value, origin)
        this.originOf[number] = origin
      } else this.originOf[number] = this.origins.of.get(value) ?? null
    }
    out.byte(Tag.ref)
    out.count(number)
    if (this.edges) (this.edges[this.current] ??= []).push(number)
  }

  /** @param {symbol} value @param {PathStep} step */
  symbol(value, step) {
    const out = /** @type {Writer} */ (this.out)
    const known = wellKnownSymbols.get(value)
    const key = known === undefined ? Symbol.keyFor(value) : undefined
    const name = known ?? key ?? this.classes.names.get(value)
    if (name === undefined) {
      this.refuse(this.pathOf(this.current, step), {
        type: String(value),
        reason: 'a symbol is found again only by a name',
        advice: 'use Symbol.for(name), or give it a name by job.classes({ name: theSymbol })',
      })
      out.byte(Tag.undefined)
      return
    }
    out.byte(known !== undefined ? Tag.wellKnownSymbol : key !== undefined ? Tag.symbolFor : Tag.namedSymbol)
    out.string(name)
  }

  /** @param {Function} value @param {PathStep} step */
  callable(value, step) {
    const out = /** @type {Writer} */ (this.out)
    const builtin = namesOfConstructors.get(value)
    const name = builtin ?? this.classes.names.get(value)
    if (name !== undefined) {
      out.byte(builtin !== undefined ? Tag.builtinClass : Tag.namedClass)
      out.string(name)
      return
    }
    const proxy = types.isProxy(value)
    if (!this.discover)
      this.refuse(
        this.pathOf(this.current, step),
        proxy ? /** @type {import('./kind.js').Refusal} */ (refusals.proxy) : functionRefusal(value),
      )
    out.byte(Tag.undefined)
  }

  /** @param {object} object @param {number} number */
  record(object, number) {
    const kindOrRefusal = kindOf(object)
    let kind = typeof kindOrRefusal === 'number' ? kindOrRefusal : 0
    if (kind === 0 && kindOrRefusal === refusals.proxy) return this.refuseObject(number, refusals.proxy)
    const prototype = getPrototypeOf(object)
    const usual = kind === Kind.object ? prototype === Object.prototype : false
    const verdict = usual ? null : this.verdict(prototype)
    if (number === 0 && verdict && verdict.do !== 'null')
      return this.refuseObject(0, {
        type: 'state',
        reason: 'the state is no plain object',
        advice: 'pass job.state({ … })',
      })
    if (verdict?.do === 'named' && verdict.custom) return this.custom(object, number, verdict)
    if (kind === 0) return this.refuseObject(number, /** @type {import('./kind.js').Refusal} */ (kindOrRefusal))
    if (verdict?.do === 'refuse') return this.refuseObject(number, verdict)
    if (kind === Kind.typedArray && isPooled(object)) kind = Kind.pooled
    if (this.parents[number] === 0) this.noteTop(number, kind, verdict)

    const out = /** @type {Writer} */ (this.out)
    out.byte(kind)
    const keys = this.propertyKeys(object, kind)
    const usualName = kind === Kind.typedArray ? typedArrayName(object) : usualPrototype[kind]
    const special = verdict !== null && !(verdict.do === 'builtin' && verdict.name === usualName)
    const described = keys.length > 0 && !allUsual(object, keys)
    const origin = this.originFlag(object, number)
    out.byte(
      (special ? Flag.prototype : 0) |
        (isExtensible(object) ? 0 : Flag.notExtensible) |
        (keys.length > 0 ? Flag.properties : 0) |
        (described ? Flag.described : 0) |
        origin,
    )
    if (origin === Flag.moved) this.path(/** @type {Origin} */ (this.originOf[number]).path())
    if (special) this.prototype(prototype, /** @type {PrototypeVerdict} */ (verdict))
    this.body(object, kind, number)
    if (keys.length > 0) {
      if (described) this.describedProperties(object, keys)
      else this.properties(object, keys)
    }
  }

  /** @param {object | null} prototype @returns {PrototypeVerdict} */
  verdict(prototype) {
    let verdict = this.verdicts.get(prototype)
    if (verdict === undefined) {
      verdict = this.classes.verdict(prototype)
      if (this.discover && verdict.do === 'refuse' && verdict.unknown) {
        this.classes.discover(verdict.unknown)
        verdict = this.classes.verdict(prototype)
      }
      this.verdicts.set(prototype, verdict)
    }
    return verdict
  }

  /** @param {number} number @param {number} kind @param {PrototypeVerdict | null} verdict */
  noteTop(number, kind, verdict) {
    const top = this.tops[/** @type {number} */ (this.top[number])]
    if (top)
      top.kind =
        verdict && (verdict.do === 'named' || verdict.do === 'builtin')
          ? verdict.name
          : /** @type {string} */ (kindNames[kind])
  }

  /** @param {object} object @param {number} number @returns {number} */
  originFlag(object, number) {
    if (number === 0) return 0
    const origin = this.originOf[number]
    if (!origin) return Flag.fresh
    const parent = this.originOf[/** @type {number} */ (this.parents[number])] ?? null
    const same =
      parent !== null && origin.parent === parent && sameStep(origin.step, /** @type {PathStep} */ (this.steps[number]))
    return same ? 0 : Flag.moved
  }

  /** @param {PathStep[]} steps */
  path(steps) {
    const out = /** @type {Writer} */ (this.out)
    out.count(steps.length)
    for (const step of steps) {
      if (step instanceof Step) {
        out.byte(1)
        out.string(step.kind)
        out.byte(step.byNumber ? 1 : 0)
        this.value(step.value, step)
      } else {
        out.byte(0)
        this.value(typeof step === 'number' ? String(step) : step, step)
      }
    }
  }

  /** @param {object | null} prototype @param {PrototypeVerdict} verdict */
  prototype(prototype, verdict) {
    const out = /** @type {Writer} */ (this.out)
    switch (verdict.do) {
      case 'null':
        out.byte(Prototype.null)
        return
      case 'builtin':
        out.byte(Prototype.builtin)
        out.string(verdict.name)
        return
      case 'named':
        out.byte(Prototype.named)
        out.string(verdict.name)
        return
      default:
        out.byte(Prototype.ref)
        this.value(prototype, prototypeStep)
    }
  }

  /** The keys that are properties like any other: not an array's elements, nor what the kind's own record holds. @param {object} object @param {number} kind */
  propertyKeys(object, kind) {
    switch (kind) {
      case Kind.array:
        if (hasOnlyElements(object, kind)) return none
        return ownKeys(object).filter((key) => typeof key === 'symbol' || (key !== 'length' && !isIndex(key)))
      case Kind.typedArray:
      case Kind.pooled:
        if (hasOnlyElements(object, kind)) return none
        return ownKeys(object).filter((key) => typeof key === 'symbol' || !isIndex(key))
      case Kind.regexp:
        return ownKeys(object).filter((key) => key !== 'lastIndex')
      case Kind.boxed:
        if (!types.isStringObject(object)) return ownKeys(object)
        return ownKeys(object).filter(
          (key) => typeof key === 'symbol' || (key !== 'length' && !(isIndex(key) && +key < unbox(object).length)),
        )
      default:
        return ownKeys(object)
    }
  }

  /** @param {object} object @param {PropertyKey[]} keys */
  properties(object, keys) {
    const out = /** @type {Writer} */ (this.out)
    let shape = this.shapes
    for (const key of keys) shape = shape.with(key)
    if (shape.number < 0) {
      out.count(this.shapeCount)
      out.count(keys.length)
      for (const key of keys) this.value(key, /** @type {PathStep} */ (key))
      shape.number = this.shapeCount++
    } else out.count(shape.number)
    const root = this.current === 0
    for (const key of keys) {
      if (root) this.startTop(object, key)
      this.value(/** @type {any} */ (object)[key], /** @type {PathStep} */ (key))
    }
  }

  /** @param {object} object @param {PropertyKey[]} keys */
  describedProperties(object, keys) {
    const out = /** @type {Writer} */ (this.out)
    out.count(keys.length)
    for (const key of keys) {
      const step = /** @type {PathStep} */ (key)
      if (this.current === 0) this.startTop(object, key)
      this.value(key, step)
      const found = /** @type {PropertyDescriptor} */ (getOwnPropertyDescriptor(object, key))
      const descriptor = readStack(object, key, found)
      out.byte(attributes(descriptor))
      if (isAccessor(descriptor)) {
        this.refuse(this.pathOf(this.current, step), accessorRefusal)
        out.byte(Tag.undefined)
      } else this.value(descriptor.value, step)
    }
  }

  /** @param {object} object @param {PropertyKey} key */
  startTop(object, key) {
    const value = getOwnPropertyDescriptor(object, key)?.value
    this.tops.push({ step: /** @type {PathStep} */ (key), kind: value === null ? 'null' : typeof value, bytes: 0 })
  }

  /** @param {any} object @param {number} kind @param {number} number */
  body(object, kind, number) {
    const out = /** @type {Writer} */ (this.out)
    switch (kind) {
      case Kind.array:
        return this.array(object)
      case Kind.map: {
        out.count(mapSize(object))
        let at = 0
        mapForEach(object, (/** @type {unknown} */ value, /** @type {unknown} */ key) => {
          const byNumber = (typeof key === 'object' && key !== null) || typeof key === 'function'
          this.value(key, new Step('key', at))
          this.value(value, new Step('at', byNumber ? at : key, byNumber))
          at++
        })
        return
      }
      case Kind.set: {
        out.count(setSize(object))
        let at = 0
        setForEach(object, (/** @type {unknown} */ value) => this.value(value, new Step('member', at++)))
        return
      }
      case Kind.date:
        return out.double(dateTime(object))
      case Kind.regexp: {
        out.string(regexpSource(object))
        out.string(regexpFlags(object))
        const last = /** @type {PropertyDescriptor} */ (getOwnPropertyDescriptor(object, 'lastIndex'))
        out.byte(last.writable ? 1 : 0)
        return this.value(last.value, 'lastIndex')
      }
      case Kind.boxed:
        return this.value(unbox(object), new Step('data'))
      case Kind.arrayBuffer:
        return this.arrayBuffer(object, number)
      case Kind.typedArray:
        out.string(typedArrayName(object))
        return this.view(object, number, typedArrayBuffer(object), typedArrayOffset(object), typedArrayLength(object))
      case Kind.dataView:
        return this.dataView(object, number)
      case Kind.url:
        return out.string(urlHref(object))
      case Kind.pooled: {
        const base = typedArrayBuffer(object)
        const from = typedArrayOffset(object)
        const length = typedArrayLength(object)
        this.notePooled(base, number, from, from + length)
        out.count(length)
        return out.bytes(new Uint8Array(base, from, length))
      }
    }
  }

  /** @param {unknown[]} array */
  array(array) {
    const out = /** @type {Writer} */ (this.out)
    const length = array.length
    const fixedLength = /** @type {PropertyDescriptor} */ (getOwnPropertyDescriptor(array, 'length')).writable ? 0 : 1
    const { mode, indices } = arrayMode(array, length)
    out.byte(mode * 2 + fixedLength)
    out.count(length)
    if (indices) {
      out.count(indices.length)
      for (const index of indices) {
        out.count(index)
        this.element(array, index, true)
      }
    } else if (mode === ArrayMode.doubles)
      for (let at = 0; at < length; at++) out.double(/** @type {number} */ (array[at]))
    else if (mode === ArrayMode.described) for (let at = 0; at < length; at++) this.element(array, at, true)
    else
      for (let at = 0; at < length; at++) {
        const found = getOwnPropertyDescriptor(array, at)
        if (found) this.value(found.value, at)
        else out.byte(Tag.hole)
      }
  }

  /** @param {unknown[]} array @param {number} index @param {boolean} described */
  element(array, index, described) {
    const out = /** @type {Writer} */ (this.out)
    const found = getOwnPropertyDescriptor(array, index)
    if (!found) return out.byte(Tag.hole)
    if (isAccessor(found)) {
      this.refuse(this.pathOf(this.current, index), accessorRefusal)
      out.byte(Tag.undefined)
    } else this.value(found.value, index)
    if (described) out.byte(attributes(found))
  }

  /** @param {ArrayBuffer} buffer @param {number} number */
  arrayBuffer(buffer, number) {
    const out = /** @type {Writer} */ (this.out)
    const length = bufferLength(buffer)
    let bytes
    try {
      bytes = new Uint8Array(buffer)
    } catch {
      this.refuseObject(number, /** @type {import('./kind.js').Refusal} */ (refusals.detached))
      bytes = new Uint8Array()
    }
    this.notePooled(buffer, number, -1, -1)
    out.count(length)
    out.count(bufferResizable(buffer) ? bufferMaxLength(buffer) + 1 : 0)
    if (length < OUT_OF_BAND) return out.bytes(bytes)
    const offset = Math.ceil(this.bufferBytes / ALIGNMENT) * ALIGNMENT
    this.buffers.push({ offset, bytes, number })
    this.bufferBytes = offset + length
    const top = this.tops[/** @type {number} */ (this.top[number])]
    if (top) top.bytes += length
  }

  /** @param {DataView} object @param {number} number */
  dataView(object, number) {
    let offset = 0
    let length = 0
    try {
      offset = viewOffset(object)
      length = viewLength(object)
    } catch {
      return this.refuseObject(number, /** @type {import('./kind.js').Refusal} */ (refusals.detached))
    }
    this.view(object, number, viewBuffer(object), offset, length)
  }

  /** @param {object} object @param {number} number @param {ArrayBufferLike} buffer @param {number} offset @param {number} length */
  view(object, number, buffer, offset, length) {
    const out = /** @type {Writer} */ (this.out)
    if (!types.isSharedArrayBuffer(buffer) && bufferResizable(buffer))
      this.refuseObject(number, {
        type: 'view',
        reason: 'whether a view on a resizable buffer grows with it cannot be read',
        advice: 'keep the buffer in the state and make the view anew',
      })
    this.value(buffer, bufferStep)
    out.count(offset)
    out.count(length)
  }

  /** Node cuts small Buffers from one memory that others use too: only a Buffer's own bytes are taken. @param {object} base @param {number} number @param {number} from @param {number} to */
  notePooled(base, number, from, to) {
    const seen = this.pooled.get(base)
    if (!seen) {
      this.pooled.set(base, [{ number, from, to }])
      return
    }
    const whole = (/** @type {{ from: number }} */ part) => part.from < 0
    const other = seen.find((part) => whole(part) || from < 0 || (part.from < to && from < part.to))
    seen.push({ number, from, to })
    if (other && !(whole(other) && from < 0))
      this.refuseObject(from < 0 ? other.number : number, {
        type: 'Buffer',
        reason: `it shares memory of Node's pool with ${pathText(this.pathOf(from < 0 ? number : other.number))}`,
        advice: 'make it by Buffer.alloc(size), which has memory of its own',
      })
  }

  /** @param {object} object @param {number} number @param {{ do: 'named', name: string, custom: boolean }} verdict */
  custom(object, number, verdict) {
    const out = /** @type {Writer} */ (this.out)
    out.byte(Kind.custom)
    const origin = this.originFlag(object, number)
    out.byte(origin)
    if (origin === Flag.moved) this.path(/** @type {Origin} */ (this.originOf[number]).path())
    out.string(verdict.name)
    if (this.parents[number] === 0) this.noteTop(number, Kind.custom, verdict)
    if (this.discover) return out.byte(Tag.undefined)
    this.customNumbers.push(number)
    let data
    try {
      if (this.customs.has(object)) data = this.customs.get(object)
      else {
        data = /** @type {Function} */ (methodOf(object, 'toPortal')).call(object)
        this.customs.set(object, data)
      }
    } catch (error) {
      this.refuseObject(number, {
        type: verdict.name,
        reason: `its toPortal() failed: ${error instanceof Error ? error.message : String(error)}`,
        advice: 'correct toPortal()',
      })
    }
    this.value(data, dataStep)
  }

  /** @param {number[][]} edges */
  refuseCycles(edges) {
    for (const number of inCycle(edges, this.objects.length, this.customNumbers))
      this.refuseObject(number, {
        type: nameOf(
          /** @type {Function} */ (classOf(getPrototypeOf(/** @type {object} */ (this.objects[number])))) ?? Object,
        ),
        reason: 'what its toPortal() gives leads back to it, so it cannot be rebuilt before itself',
        advice: 'let toPortal() give an id or a name instead',
      })
  }
}

/** @type {PropertyKey[]} */
const none = []

/** @param {string | symbol} key */
const isIndex = (key) => typeof key === 'string' && /^(0|[1-9]\d{0,9})$/.test(key) && Number(key) < 4294967295

/** @param {PropertyDescriptor} descriptor */
const isAccessor = (descriptor) =>
  descriptor.get !== undefined || descriptor.set !== undefined || !('value' in descriptor)

/** @param {PropertyDescriptor} descriptor */
const isUsual = (descriptor) =>
  descriptor.writable === true && descriptor.enumerable === true && descriptor.configurable === true

/** @param {object} object @param {PropertyKey[]} keys */
const allUsual = (object, keys) => {
  for (const key of keys)
    if (!isUsual(/** @type {PropertyDescriptor} */ (getOwnPropertyDescriptor(object, key)))) return false
  return true
}

/** @param {PropertyDescriptor} descriptor */
const attributes = (descriptor) =>
  (descriptor.writable ? Attribute.writable : 0) |
  (descriptor.enumerable ? Attribute.enumerable : 0) |
  (descriptor.configurable ? Attribute.configurable : 0)

/** @param {object} object @param {PropertyKey} key @param {PropertyDescriptor} found @returns {PropertyDescriptor} */
const readStack = (object, key, found) =>
  key === 'stack' && found.get !== undefined && found.get === stackGetter
    ? {
        value: Reflect.apply(found.get, object, []),
        writable: true,
        enumerable: found.enumerable,
        configurable: found.configurable,
      }
    : found

/**
 * How an array's elements are best written: by value, all as doubles, only those that are there, or each with its attributes.
 * @param {unknown[]} array @param {number} length @returns {{ mode: number, indices: number[] | null }}
 */
const arrayMode = (array, length) => {
  let doubles = length > 0
  let there = 0
  if (length > 1 << 22) {
    // a huge length may be nearly empty: its keys are counted instead of its places
    const keys = ownKeys(array)
    if (keys.length < length / 4) {
      const indices = keys.filter((key) => isIndex(/** @type {string} */ (key))).map(Number)
      return { mode: ArrayMode.sparse, indices }
    }
  }
  for (let at = 0; at < length; at++) {
    const found = getOwnPropertyDescriptor(array, at)
    if (!found) {
      doubles = false
      continue
    }
    there++
    if (!isUsual(found)) return { mode: ArrayMode.described, indices: null }
    if (doubles && typeof found.value !== 'number') doubles = false
  }
  if (doubles) return { mode: ArrayMode.doubles, indices: null }
  if (there < length / 4 && length > 64) {
    const indices = []
    for (let at = 0; at < length; at++) if (getOwnPropertyDescriptor(array, at)) indices.push(at)
    return { mode: ArrayMode.sparse, indices }
  }
  return { mode: ArrayMode.values, indices: null }
}

/** @param {any} object */
const isPooled = (object) => {
  if (getPrototypeOf(object) !== prototypesByName.get('Buffer')) return false
  const base = typedArrayBuffer(object)
  return (
    !types.isSharedArrayBuffer(base) &&
    poolSizes.has(bufferLength(base)) &&
    typedArrayLength(object) < bufferLength(base) &&
    !bufferResizable(base)
  )
}
const poolSizes = new Set([8192, 65536, Buffer.poolSize])

const accessorRefusal = {
  type: 'accessor',
  reason: 'a getter or setter of its own is code',
  advice: 'define it on the class, or leave it out of the state',
}

/** @param {Function} value */
const functionRefusal = (value) => ({
  type: /^class\b/.test(Function.prototype.toString.call(value)) ? 'class' : 'function',
  reason: `${nameOf(value) || 'a function'} is code, with variables that cannot be seen from outside`,
  advice: 'keep a name or an option instead, or define it as a method of a class',
})
