// @ts-check
/** What a record holds beside properties, by kind: elements, entries, memory, inner values. */
import {
  bufferLength,
  bufferMaxLength,
  bufferResizable,
  dateTime,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  hasOwn,
  mapForEach,
  mapSize,
  ownKeys,
  prototypesByName,
  regexpFlags,
  regexpSource,
  setForEach,
  setSize,
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
} from './builtins.js'
import { accessorRefusal, attributes, isAccessor, isIndex, isUsual } from './descriptors.js'
import { ALIGNMENT, ArrayMode, Kind, OUT_OF_BAND, Tag } from './format.js'
import { refusals } from './kind.js'
import { bufferStep, dataStep, pathText, Step } from './path.js'

/** @typedef {import('./walk.js').Walk} Walk */

/** @param {Walk} walk @param {any} object @param {number} kind @param {number} number */
export const writeBody = (walk, object, kind, number) => {
  const { out } = walk
  switch (kind) {
    case Kind.array:
      return array(walk, object)
    case Kind.map: {
      out.count(mapSize(object))
      let at = 0
      mapForEach(object, (/** @type {unknown} */ value, /** @type {unknown} */ key) => {
        const byNumber = (typeof key === 'object' && key !== null) || typeof key === 'function'
        walk.value(key, new Step('key', at))
        walk.value(value, new Step('at', byNumber ? at : key, byNumber))
        at++
      })
      return
    }
    case Kind.set: {
      out.count(setSize(object))
      let at = 0
      setForEach(object, (/** @type {unknown} */ value) => walk.value(value, new Step('member', at++)))
      return
    }
    case Kind.date:
      return out.double(dateTime(object))
    case Kind.regexp: {
      out.string(regexpSource(object))
      out.string(regexpFlags(object))
      const last = /** @type {PropertyDescriptor} */ (getOwnPropertyDescriptor(object, 'lastIndex'))
      out.byte(last.writable ? 1 : 0)
      return walk.value(last.value, 'lastIndex')
    }
    case Kind.boxed:
      return walk.value(unbox(object), dataStep)
    case Kind.arrayBuffer:
      return arrayBuffer(walk, object, number)
    case Kind.typedArray:
      out.string(typedArrayName(object))
      return view(walk, number, typedArrayBuffer(object), typedArrayOffset(object), typedArrayLength(object))
    case Kind.dataView:
      return dataView(walk, object, number)
    case Kind.url:
      return out.string(urlHref(object))
    case Kind.pooled: {
      const base = typedArrayBuffer(object)
      const from = typedArrayOffset(object)
      const length = typedArrayLength(object)
      notePooled(walk, base, number, from, from + length)
      out.count(length)
      return out.bytes(new Uint8Array(base, from, length))
    }
  }
}

/** @param {Walk} walk @param {unknown[]} array */
const array = (walk, array) => {
  const { out } = walk
  const length = array.length
  const fixedLength = /** @type {PropertyDescriptor} */ (getOwnPropertyDescriptor(array, 'length')).writable ? 0 : 1
  const { mode, indices, there } = arrayMode(array, length)
  out.byte(mode * 2 + fixedLength)
  out.count(length)
  if (indices) {
    out.count(indices.length)
    for (const index of indices) {
      out.count(index)
      element(walk, array, index, true)
    }
  } else if (mode === ArrayMode.doubles)
    for (let at = 0; at < length; at++) out.double(/** @type {number} */ (array[at]))
  else if (mode === ArrayMode.described) for (let at = 0; at < length; at++) element(walk, array, at, true)
  // every element that is there was seen to be a plain value
  else if (there === length) for (let at = 0; at < length; at++) walk.value(array[at], at)
  else
    for (let at = 0; at < length; at++) {
      if (hasOwn(array, at)) walk.value(array[at], at)
      else out.byte(Tag.hole)
    }
}

/** @param {Walk} walk @param {unknown[]} array @param {number} index @param {boolean} described */
const element = (walk, array, index, described) => {
  const { out } = walk
  const found = getOwnPropertyDescriptor(array, index)
  if (!found) return out.byte(Tag.hole)
  if (isAccessor(found)) {
    walk.refuse(walk.pathOf(walk.current, index), accessorRefusal)
    out.byte(Tag.undefined)
  } else walk.value(found.value, index)
  if (described) out.byte(attributes(found))
}

/**
 * How an array's elements are best written: by value, all as doubles, only those that are there, or each with its attributes.
 * @param {unknown[]} array @param {number} length @returns {{ mode: number, indices: number[] | null, there: number }} `there`: how many elements there are
 */
const arrayMode = (array, length) => {
  let doubles = length > 0
  let there = 0
  if (length > 1 << 16 && seemsSparse(array, length)) {
    // nearly empty: its keys are counted instead of its places
    const keys = ownKeys(array)
    if (keys.length < length / 4) {
      const indices = keys.filter((key) => isIndex(/** @type {string} */ (key))).map(Number)
      return { mode: ArrayMode.sparse, indices, there: indices.length }
    }
  }
  for (let at = 0; at < length; at++) {
    const found = getOwnPropertyDescriptor(array, at)
    if (!found) {
      doubles = false
      continue
    }
    there++
    if (!isUsual(found)) return { mode: ArrayMode.described, indices: null, there }
    if (doubles && typeof found.value !== 'number') doubles = false
  }
  if (doubles) return { mode: ArrayMode.doubles, indices: null, there }
  if (there < length / 4 && length > 64) {
    const indices = []
    for (let at = 0; at < length; at++) if (hasOwn(array, at)) indices.push(at)
    return { mode: ArrayMode.sparse, indices, there: indices.length }
  }
  return { mode: ArrayMode.values, indices: null, there }
}

/** Whether few of a thousand places are taken. @param {unknown[]} array @param {number} length */
const seemsSparse = (array, length) => {
  let there = 0
  for (let look = 0; look < 1_000; look++) if (hasOwn(array, Math.floor((look * length) / 1_000))) there++
  return there < 250
}

/** @param {Walk} walk @param {ArrayBuffer} buffer @param {number} number */
const arrayBuffer = (walk, buffer, number) => {
  const { out } = walk
  const length = bufferLength(buffer)
  let bytes
  try {
    bytes = new Uint8Array(buffer)
  } catch {
    walk.refuseObject(number, /** @type {import('./kind.js').Refusal} */ (refusals.detached))
    bytes = new Uint8Array()
  }
  notePooled(walk, buffer, number, -1, -1)
  out.count(length)
  out.count(bufferResizable(buffer) ? bufferMaxLength(buffer) + 1 : 0)
  if (length < OUT_OF_BAND) return out.bytes(bytes)
  const offset = Math.ceil(walk.bufferBytes / ALIGNMENT) * ALIGNMENT
  walk.buffers.push({ offset, bytes, number })
  walk.bufferBytes = offset + length
  const top = walk.tops[/** @type {number} */ (walk.top[number])]
  if (top) top.bytes += length
}

/** @param {Walk} walk @param {DataView} object @param {number} number */
const dataView = (walk, object, number) => {
  let offset = 0
  let length = 0
  try {
    offset = viewOffset(object)
    length = viewLength(object)
  } catch {
    return walk.refuseObject(number, /** @type {import('./kind.js').Refusal} */ (refusals.detached))
  }
  view(walk, number, viewBuffer(object), offset, length)
}

/** @param {Walk} walk @param {number} number @param {ArrayBufferLike} buffer @param {number} offset @param {number} length */
const view = (walk, number, buffer, offset, length) => {
  const { out } = walk
  if (!types.isSharedArrayBuffer(buffer) && bufferResizable(buffer))
    walk.refuseObject(number, {
      type: 'view',
      reason: 'whether a view on a resizable buffer grows with it cannot be read',
      advice: 'keep the buffer in the state and make the view anew',
    })
  walk.value(buffer, bufferStep)
  out.count(offset)
  out.count(length)
}

/** Node cuts small Buffers from one memory that others use too: only a Buffer's own bytes are taken. @param {Walk} walk @param {object} base @param {number} number @param {number} from @param {number} to */
const notePooled = (walk, base, number, from, to) => {
  const seen = walk.pooled.get(base)
  if (!seen) {
    walk.pooled.set(base, [{ number, from, to }])
    return
  }
  const whole = (/** @type {{ from: number }} */ part) => part.from < 0
  const other = seen.find((part) => whole(part) || from < 0 || (part.from < to && from < part.to))
  seen.push({ number, from, to })
  if (other && !(whole(other) && from < 0))
    walk.refuseObject(from < 0 ? other.number : number, {
      type: 'Buffer',
      reason: `it shares memory of Node's pool with ${pathText(walk.pathOf(from < 0 ? number : other.number))}`,
      advice: 'make it by Buffer.alloc(size), which has memory of its own',
    })
}

/** Whether a Buffer was cut from Node's pool. @param {any} object */
export const isPooled = (object) => {
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
