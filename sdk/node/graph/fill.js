// @ts-check
/** Gives one object its content: prototype, elements, properties in their order and with their attributes, extensibility. */
import {
  dateSetTime,
  defineProperty,
  deleteProperty,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  isExtensible,
  mapClear,
  mapSet,
  ownKeys,
  preventExtensions,
  setAdd,
  setClear,
  setPrototypeOf,
  typedArrayBuffer,
  typedArrayOffset,
  types,
} from './builtins.js'
import { hasOnlyElements } from './extras.js'
import { Attribute, Flag, Kind } from './format.js'
import { HOLE } from './records.js'

/**
 * @typedef {import('./records.js').Record_} Record_
 * @typedef {import('./records.js').Property} Property
 */

const hrefOf = /** @type {{ set(this: URL, value: string): void }} */ (getOwnPropertyDescriptor(URL.prototype, 'href'))

/** @param {import('./restore.js').Restore} restore @param {number} number @param {Record_} record */
export const fill = (restore, number, record) => {
  if (record.kind === Kind.custom) return restore.rebuild(number, record)
  const object = restore.objects[number]
  const live = restore.live[number] === true
  const no = (/** @type {string} */ what) =>
    restore.refuse(
      number,
      'object',
      `the script's own object there cannot be changed (${what})`,
      'freeze or seal it after job.state(), or put null there before',
    )
  const prototype = restore.prototypeOf(record)
  if (getPrototypeOf(object) !== prototype && !setPrototypeOf(object, prototype)) return no('its prototype is fixed')
  body(object, record, live, no)
  const changed = live
    ? properties(object, record, no)
    : define(object, record.properties, prototype === Object.prototype)
  if (!changed) return
  if (record.kind === Kind.array && record.fixed) defineProperty(object, 'length', { writable: false })
  if (record.flags & Flag.notExtensible) preventExtensions(object)
  else if (live && !isExtensible(object)) no('it is not extensible')
}

/** @param {any} object @param {Record_} record @param {boolean} live @param {(what: string) => void} no */
const body = (object, record, live, no) => {
  switch (record.kind) {
    case Kind.array:
      return elements(object, record, live, no)
    case Kind.map:
      if (live) mapClear(object)
      for (let at = 0; at < record.length; at++) mapSet(object, record.keys[at], record.items[at])
      return
    case Kind.set:
      if (live) setClear(object)
      for (const item of record.items) setAdd(object, item)
      return
    case Kind.date:
      dateSetTime(object, record.value)
      return
    case Kind.regexp:
      if (!defineProperty(object, 'lastIndex', { value: record.value, writable: !record.fixed }))
        no('its lastIndex is fixed')
      return
    case Kind.url:
      if (live) hrefOf.set.call(object, record.name)
      return
    case Kind.pooled:
      new Uint8Array(typedArrayBuffer(object), typedArrayOffset(object), record.length).set(
        /** @type {Uint8Array} */ (record.bytes),
      )
      return
    default:
  }
}

/** @param {unknown[]} array @param {Record_} record @param {boolean} live @param {(what: string) => void} no */
const elements = (array, record, live, no) => {
  const { items, attributes, indices } = record
  if (live && !emptied(array, record)) return no('its elements are fixed')
  if (array.length !== record.length && !Reflect.set(array, 'length', record.length)) return no('its length is fixed')
  for (let at = 0; at < items.length; at++) {
    const value = items[at]
    if (value === HOLE) continue
    const index = indices ? /** @type {number} */ (indices[at]) : at
    const attribute = attributes ? /** @type {number} */ (attributes[at]) : Attribute.all
    if (!defineProperty(array, index, descriptor(value, attribute))) return no(`[${index}] is fixed`)
  }
}

/** Elements that are there now and were not then are taken away. @param {unknown[]} array @param {Record_} record */
const emptied = (array, record) => {
  if (record.indices || record.items.includes(HOLE))
    for (const key of ownKeys(array))
      if (typeof key === 'string' && key !== 'length' && String(Number(key)) === key && !deleteProperty(array, key))
        return false
  return array.length <= record.length || Reflect.set(array, 'length', record.length)
}

/** @param {object} object @param {Property[]} wanted @param {boolean} plain nothing is inherited that an assignment could run */
const define = (object, wanted, plain) => {
  for (const { key, value, attributes } of wanted)
    if (plain && attributes === Attribute.all && !(key in object)) /** @type {any} */ (object)[key] = value
    else if (!defineProperty(object, key, descriptor(value, attributes))) return false
  return true
}

/** The properties of an object that the script holds: the same keys in the same order. @param {any} object @param {Record_} record @param {(what: string) => void} no */
const properties = (object, record, no) => {
  const wanted = record.properties
  const present = presentKeys(object, record.kind)
  const inOrder = present.length === wanted.length && present.every((key, at) => key === wanted[at]?.key)
  if (!inOrder)
    for (const key of present)
      if (!deleteProperty(object, key)) {
        no(`${String(key)} is fixed`)
        return false
      }
  for (const { key, value, attributes } of wanted)
    if (!defineProperty(object, key, descriptor(value, attributes))) {
      no(`${String(key)} is fixed`)
      return false
    }
  return true
}

/** @param {object} object @param {number} kind @returns {PropertyKey[]} */
const presentKeys = (object, kind) => {
  const elementsToo = kind === Kind.array || kind === Kind.typedArray || kind === Kind.pooled
  if (elementsToo && hasOnlyElements(object, kind)) return []
  return ownKeys(object).filter((key) => {
    if (typeof key === 'symbol') return true
    if (kind === Kind.regexp) return key !== 'lastIndex'
    const element = String(Number(key)) === key && Number(key) >= 0
    if (elementsToo) return key !== 'length' ? !element : kind !== Kind.array
    return kind === Kind.boxed && types.isStringObject(object) ? key !== 'length' && !element : true
  })
}

/** @param {unknown} value @param {number} attributes @returns {PropertyDescriptor} */
const descriptor = (value, attributes) => ({
  value,
  writable: (attributes & Attribute.writable) !== 0,
  enumerable: (attributes & Attribute.enumerable) !== 0,
  configurable: (attributes & Attribute.configurable) !== 0,
})
