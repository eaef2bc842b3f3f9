// @ts-check
/**
 * The language's own functions, taken before a job can replace them, and the prototypes that every Node has, by name.
 */
import { EventEmitter } from 'node:events'
import { types } from 'node:util'

/** @template {(...args: any[]) => any} F @param {F} fn @returns {(self: any, ...args: any[]) => any} */
export const uncurry = (fn) => Function.prototype.call.bind(fn)

/** @param {object} owner @param {PropertyKey} key */
const getter = (owner, key) => {
  const found = Reflect.getOwnPropertyDescriptor(owner, key)?.get
  if (!found) throw new Error(`this Node has no getter ${String(key)}`)
  return uncurry(found)
}

export const { ownKeys, getOwnPropertyDescriptor, defineProperty, getPrototypeOf, setPrototypeOf, deleteProperty } =
  Reflect
export const { hasOwn, isExtensible, preventExtensions } = Object
export const isArray = Array.isArray
export const isView = ArrayBuffer.isView

export const TypedArray = Object.getPrototypeOf(Uint8Array)
const TypedArrayPrototype = TypedArray.prototype
export const typedArrayName = getter(TypedArrayPrototype, Symbol.toStringTag)
export const typedArrayBuffer = getter(TypedArrayPrototype, 'buffer')
export const typedArrayOffset = getter(TypedArrayPrototype, 'byteOffset')
export const typedArrayLength = getter(TypedArrayPrototype, 'length')
export const viewBuffer = getter(DataView.prototype, 'buffer')
export const viewOffset = getter(DataView.prototype, 'byteOffset')
export const viewLength = getter(DataView.prototype, 'byteLength')
export const bufferLength = getter(ArrayBuffer.prototype, 'byteLength')
export const bufferResizable = getter(ArrayBuffer.prototype, 'resizable')
export const bufferMaxLength = getter(ArrayBuffer.prototype, 'maxByteLength')
export const bufferResize = uncurry(ArrayBuffer.prototype.resize)

export const mapForEach = uncurry(Map.prototype.forEach)
export const mapSet = uncurry(Map.prototype.set)
export const mapGet = uncurry(Map.prototype.get)
export const mapClear = uncurry(Map.prototype.clear)
export const mapSize = getter(Map.prototype, 'size')
export const setForEach = uncurry(Set.prototype.forEach)
export const setAdd = uncurry(Set.prototype.add)
export const setClear = uncurry(Set.prototype.clear)
export const setSize = getter(Set.prototype, 'size')
export const dateTime = uncurry(Date.prototype.getTime)
export const dateSetTime = uncurry(Date.prototype.setTime)
export const regexpSource = getter(RegExp.prototype, 'source')
export const regexpCompile = uncurry(RegExp.prototype.compile)
export const functionText = uncurry(Function.prototype.toString)
export const urlHref = getter(URL.prototype, 'href')

const flagGetters = /** @type {const} */ ([
  ['d', 'hasIndices'],
  ['g', 'global'],
  ['i', 'ignoreCase'],
  ['m', 'multiline'],
  ['s', 'dotAll'],
  ['u', 'unicode'],
  ['v', 'unicodeSets'],
  ['y', 'sticky'],
]).map(([letter, name]) => /** @type {const} */ ([letter, getter(RegExp.prototype, name)]))

/** The flags without asking `RegExp.prototype.flags`, which reads properties that a job can replace. */
export const regexpFlags = (/** @type {RegExp} */ value) =>
  flagGetters.map(([letter, has]) => (has(value) ? letter : '')).join('')

const boxes = /** @type {const} */ ([
  ['number', types.isNumberObject, uncurry(Number.prototype.valueOf)],
  ['string', types.isStringObject, uncurry(String.prototype.valueOf)],
  ['boolean', types.isBooleanObject, uncurry(Boolean.prototype.valueOf)],
  ['bigint', types.isBigIntObject, uncurry(BigInt.prototype.valueOf)],
  ['symbol', types.isSymbolObject, uncurry(Symbol.prototype.valueOf)],
])

/** The primitive in a boxed one (`new Number(1)`). */
export const unbox = (/** @type {object} */ value) => {
  for (const [, is, valueOf] of boxes) if (is(value)) return valueOf(value)
  throw new TypeError('not a boxed primitive')
}

/** In newer Nodes an error's `stack` is an accessor of the engine's own; it is read as the value that it stands for. */
export const stackGetter = getOwnPropertyDescriptor(new Error('probe'), 'stack')?.get

export const isNative = (/** @type {Function} */ fn) => /\{\s*\[native code\]\s*\}\s*$/.test(functionText(fn))

export const typedArrayNames = [
  'Int8Array',
  'Uint8Array',
  'Uint8ClampedArray',
  'Int16Array',
  'Uint16Array',
  'Int32Array',
  'Uint32Array',
  'Float32Array',
  'Float64Array',
  'BigInt64Array',
  'BigUint64Array',
  'Float16Array',
]
/** @type {Record<string, any>} */
const global = globalThis
export const typedArrayTypes = new Map(
  typedArrayNames.filter((name) => name in globalThis).map((name) => [name, global[name]]),
)

const carriedNames = [
  ...typedArrayTypes.keys(),
  ...'Object Array Map Set Date RegExp ArrayBuffer DataView Buffer URL Number String Boolean BigInt Symbol'.split(' '),
  ...'Error TypeError RangeError SyntaxError ReferenceError EvalError URIError AggregateError'.split(' '),
]
/** Constructors whose instances are carried, by name; a class as a value is carried by that name. */
export const constructorsByName = new Map(carriedNames.map((name) => [name, global[name]]))
constructorsByName.set('EventEmitter', EventEmitter)
export const namesOfConstructors = new Map([...constructorsByName].map(([name, type]) => [type, name]))
export const prototypesByName = new Map([...constructorsByName].map(([name, type]) => [name, type.prototype]))
export const namesOfPrototypes = new Map([...prototypesByName].map(([name, prototype]) => [prototype, name]))

const IteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()))
const AsyncIteratorPrototype = Object.getPrototypeOf(
  Object.getPrototypeOf(Object.getPrototypeOf((async function* () {})())),
)
/** Prototypes that mean: the rest of this object lies in the engine, where nobody can read it. */
export const iteratorPrototypes = new Set([IteratorPrototype, AsyncIteratorPrototype])

/** `Symbol.iterator` and its like, by their names. */
export const wellKnownSymbols = new Map(
  ownKeys(Symbol)
    .map((key) => /** @type {const} */ ([key, getOwnPropertyDescriptor(Symbol, key)?.value]))
    .filter(([key, value]) => typeof key === 'string' && typeof value === 'symbol' && !Symbol.keyFor(value))
    .map(([key, value]) => [value, String(key)]),
)
// under these Node keeps what every EventEmitter has; without listeners there is nothing in it that cannot be carried
for (const key of ownKeys(new EventEmitter()))
  if (typeof key === 'symbol') wellKnownSymbols.set(key, `node:events ${key.description}`)
export const wellKnownByName = new Map([...wellKnownSymbols].map(([symbol, name]) => [name, symbol]))

export { types }
