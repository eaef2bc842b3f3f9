// @ts-check
/** The objects that the script holds: how they are found, and whether a saved content can go into them. */
import {
  bufferLength,
  bufferMaxLength,
  bufferResizable,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  isArray,
  mapForEach,
  mapGet,
  regexpFlags,
  regexpSource,
  setForEach,
  typedArrayBuffer,
  typedArrayLength,
  typedArrayName,
  unbox,
  viewBuffer,
} from './builtins.js'
import { classOf, nameOf } from './classes.js'
import { Kind, kindNames } from './format.js'
import { kindOf } from './kind.js'
import { Step } from './path.js'

/**
 * @typedef {import('./path.js').PathStep} PathStep
 * @typedef {import('./records.js').Record_} Record_
 * @typedef {import('./restore.js').Restore} Restore
 */

/** Whether the content can go into the script's own object; if it must and cannot, that is named. @param {Restore} restore @param {number} number @param {Record_} record @param {any} candidate */
export const fits = (restore, number, record, candidate) => {
  const no = (/** @type {string} */ reason) => {
    restore.refuse(number, typeName(record), reason, 'make it the same before job.state() as it was when the job began')
    return false
  }
  const other = restore.taken.get(candidate)
  if (other !== undefined) return no(`here it is the same object as ${restore.pathOf(other)}, and was another`)
  restore.taken.set(candidate, number)
  const kind = kindOf(candidate)
  if (record.kind === Kind.custom) {
    const type = restore.classes.byName.get(record.name)
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

/**
 * One step on from a live object, without running anything of the job's.
 * @param {any} object @param {PathStep} step @param {Map<object, unknown[]>} [entries] what was listed already @returns {any}
 */
export const follow = (object, step, entries = new Map()) => {
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
      return step.byNumber ? listed(object, kind, entries)[Number(step.value) * 2 + 1] : mapGet(object, step.value)
    case 'key':
      return kind === Kind.map ? listed(object, kind, entries)[Number(step.value) * 2] : undefined
    case 'member':
      return kind === Kind.set ? listed(object, kind, entries)[Number(step.value)] : undefined
    default:
      return undefined
  }
}

/** A set's members, or a map's keys and values in turn. @param {object} object @param {number} kind @param {Map<object, unknown[]>} entries */
const listed = (object, kind, entries) => {
  let list = entries.get(object)
  if (!list) {
    /** @type {unknown[]} */
    const found = []
    if (kind === Kind.map)
      mapForEach(object, (/** @type {unknown} */ value, /** @type {unknown} */ key) => found.push(key, value))
    else setForEach(object, (/** @type {unknown} */ member) => found.push(member))
    entries.set(object, (list = found))
  }
  return list
}

/** @param {Record_} record */
export const typeName = (record) => {
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
