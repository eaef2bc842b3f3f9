// @ts-check
/**
 * The walker: looks at every object of the state once, breadth first and without recursion, runs none of the job's code
 * but `toPortal`, and writes each down or names it as one that cannot be carried.
 */
import {
  getPrototypeOf,
  isExtensible,
  namesOfConstructors,
  typedArrayName,
  types,
  wellKnownSymbols,
} from './builtins.js'
import { isPooled, writeBody } from './bodies.js'
import { allUsual } from './descriptors.js'
import { classOf, methodOf, nameOf } from './classes.js'
import { Flag, Kind, kindNames, Prototype, Tag, Writer } from './format.js'
import { propertyKeys, writeDescribed, writeProperties } from './properties.js'
import { kindOf, refusals } from './kind.js'
import { Origin } from './origins.js'
import { dataStep, pathText, prototypeStep, sameStep, Step } from './path.js'
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
    /** places at the start that were written already @type {Map<Origin, number>} */
    this.originNumbers = new Map()
    /** @type {Map<object | null, PrototypeVerdict>} */
    this.verdicts = new Map()
    this.shapes = new Shape()
    this.shapeCount = 0
    /** @type {OutOfBand[]} */
    this.buffers = []
    this.bufferBytes = 0
    /** who refers to whom, for cycles through `toPortal` @type {number[][] | null} */
    this.edges = this.discover || !classes.anyCustom() ? null : []
    this.customNumbers = /** @type {number[]} */ ([])
    /** memory of Node's pool seen as one Buffer's own, and memory seen as a whole @type {Map<object, { number: number, from: number, to: number }[]>} */
    this.pooled = new Map()
    /** finds the object whose record holds a byte of the graph */
    this.watched = { offset: -1, number: 0 }
    this.current = 0
    this.out = new Writer(() => {}, 0)
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
      if (before <= this.watched.offset) this.watched.number = this.current
      this.record(/** @type {object} */ (this.objects[this.current]), this.current)
      const top = this.tops[/** @type {number} */ (this.top[this.current])]
      if (top) top.bytes += this.out.total - before
    }
    this.out.end()
    if (this.customNumbers.length > 0 && this.edges) this.refuseCycles(this.edges)
    return this.out.total
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
    const { out } = this
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
    const { out } = this
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
    const { out } = this
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
    const { out } = this
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

    const { out } = this
    out.byte(kind)
    const keys = propertyKeys(object, kind)
    const usualName = kind === Kind.typedArray ? typedArrayName(object) : usualPrototype[kind]
    const special = verdict !== null && !(verdict.do === 'builtin' && verdict.name === usualName)
    const described = keys.length > 0 && !allUsual(object, keys)
    const origin = this.originFlag(number)
    out.byte(
      (special ? Flag.prototype : 0) |
        (isExtensible(object) ? 0 : Flag.notExtensible) |
        (keys.length > 0 ? Flag.properties : 0) |
        (described ? Flag.described : 0) |
        origin,
    )
    if (origin === Flag.moved) this.movedFrom(/** @type {Origin} */ (this.originOf[number]))
    if (special) this.prototype(prototype, /** @type {PrototypeVerdict} */ (verdict))
    writeBody(this, object, kind, number)
    if (keys.length > 0) {
      if (described) writeDescribed(this, object, keys)
      else writeProperties(this, object, keys)
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

  /** @param {number} number @returns {number} */
  originFlag(number) {
    if (number === 0) return 0
    const origin = this.originOf[number]
    if (!origin) return Flag.fresh
    const parent = this.originOf[/** @type {number} */ (this.parents[number])] ?? null
    const same =
      parent !== null && origin.parent === parent && sameStep(origin.step, /** @type {PathStep} */ (this.steps[number]))
    return same ? 0 : Flag.moved
  }

  /**
   * Where an object stood at the start: the steps from a place that was written before, so that a long list turned round
   * does not write its whole length for each of its parts. @param {Origin} origin
   */
  movedFrom(origin) {
    const { out } = this
    const steps = []
    let at = origin
    for (; at.parent !== null && !this.originNumbers.has(at); at = at.parent) steps.push(at)
    out.count(this.originNumbers.get(at) ?? 0)
    out.count(steps.length)
    for (const each of steps.toReversed()) {
      this.originNumbers.set(each, this.originNumbers.size + 1)
      this.step(each.step)
    }
  }

  /** @param {PathStep} step */
  step(step) {
    const { out } = this
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

  /** @param {object | null} prototype @param {PrototypeVerdict} verdict */
  prototype(prototype, verdict) {
    const { out } = this
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

  /** @param {object} object @param {number} number @param {{ do: 'named', name: string, custom: boolean }} verdict */
  custom(object, number, verdict) {
    const { out } = this
    out.byte(Kind.custom)
    const origin = this.originFlag(number)
    out.byte(origin)
    if (origin === Flag.moved) this.movedFrom(/** @type {Origin} */ (this.originOf[number]))
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
        type: this.typeOf(number),
        reason: 'what its toPortal() gives leads back to it, so it cannot be rebuilt before itself',
        advice: 'let toPortal() give an id or a name instead',
      })
  }

  /** The object whose record holds the byte at that offset of the graph. @param {object} root @param {number} offset */
  at(root, offset) {
    this.watched.offset = offset
    this.run(root, () => {})
    return { path: pathText(this.pathOf(this.watched.number)), type: this.typeOf(this.watched.number) }
  }

  /** The name of an object's class. @param {number} number */
  typeOf(number) {
    const prototype = getPrototypeOf(/** @type {object} */ (this.objects[number]))
    const type = prototype && classOf(prototype)
    return (type && nameOf(type)) || 'object'
  }
}

/** @param {Function} value */
const functionRefusal = (value) => ({
  type: /^class\b/.test(Function.prototype.toString.call(value)) ? 'class' : 'function',
  reason: `${nameOf(value) || 'a function'} is code, with variables that cannot be seen from outside`,
  advice: 'keep a name or an option instead, or define it as a method of a class',
})
