// @ts-check
/** New objects of each kind, still empty. */
import { ownKeys, deleteProperty } from './builtins.js'
import { FormatError, Kind } from './format.js'

/**
 * @typedef {import('./records.js').Record_} Record_
 * @typedef {import('./restore.js').Restore} Restore
 */

/** An object of its kind, empty. @param {Restore} restore @param {number} number @param {Record_} record @param {unknown} liveCustom @returns {any} */
export const make = (restore, number, record, liveCustom) => {
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
        restore.refuse(number, 'RegExp', 'this Node does not know it', 'use a newer Node')
        return /none/
      }
    case Kind.error: {
      const error = new Error()
      for (const key of ownKeys(error)) deleteProperty(error, key)
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
      return fromPool(record.length)
    case Kind.custom:
      return liveCustom
    default:
      // views are made when all memory is there
      return undefined
  }
}

const POOL_BYTES = 65_536
let pool = new ArrayBuffer(POOL_BYTES)
let used = 0

/** A Buffer cut from memory that it shares with others, as the saved one was. @param {number} length less than the pool */
const fromPool = (length) => {
  if (length >= POOL_BYTES) throw new FormatError('a small Buffer is too large')
  if (used + length > POOL_BYTES) {
    pool = new ArrayBuffer(POOL_BYTES)
    used = 0
  }
  const buffer = Buffer.from(pool, used, length)
  used += Math.ceil(length / 8) * 8
  return buffer
}
