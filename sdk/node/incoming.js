// @ts-check
/**
 * A restore on its way. Bytes are placed as they come, large ones straight into the memory that the script holds; nothing
 * is interpreted before the agent has said that every hash was right.
 */
import { types } from 'node:util'
import { bufferLength, bufferResizable } from './graph/builtins.js'
import { FormatError } from './graph/format.js'
import { follow } from './graph/live.js'
import { bufferStep } from './graph/path.js'

/** In a path of the SDK's meta: from a view to its memory. */
export const BUFFER_IN_PATH = 0

/**
 * Where a buffer lies in the stream, and how the script's own one is found, if it is one of the script's.
 * @typedef {[offset: number, length: number, path: (string | 0)[] | null]} PlacedBuffer
 */

/** The memory of all large buffers, by where they lie in the stream `buffers`. */
export class Memory {
  /**
   * @param {number} total bytes of the stream @param {readonly PlacedBuffer[] | null} layout null: there are too many to say
   * @param {object | null} root the script's state
   */
  constructor(total, layout, root) {
    this.total = total
    this.whole = layout === null
    /** @type {{ offset: number, bytes: Uint8Array }[]} */
    this.parts = []
    const taken = new Set()
    let end = 0
    for (const [offset, length, path] of layout ?? [[0, total, null]]) {
      if (
        !Number.isSafeInteger(offset) ||
        !Number.isSafeInteger(length) ||
        offset < end ||
        length < 0 ||
        offset + length > total
      )
        throw new FormatError('the buffers lie across each other')
      end = offset + length
      const live = root && path ? this.live(root, path, length) : null
      const buffer = live && !taken.has(live) ? live : new ArrayBuffer(length)
      taken.add(buffer)
      this.parts.push({ offset, bytes: new Uint8Array(buffer) })
    }
    if (end !== total) throw new FormatError('the buffers have another length')
    this.next = 0
  }

  /** @param {object} root @param {readonly (string | 0)[]} path @param {number} length @returns {ArrayBuffer | null} */
  live(root, path, length) {
    /** @type {any} */
    let at = root
    for (const step of path) at = follow(at, step === BUFFER_IN_PATH ? bufferStep : step)
    return types.isArrayBuffer(at) && !bufferResizable(at) && bufferLength(at) === length ? at : null
  }

  /** @param {number} offset in the stream @param {Uint8Array} bytes */
  place(offset, bytes) {
    // they come in order: the search goes on from where the last one ended
    if ((this.parts[this.next]?.offset ?? 0) > offset) this.next = 0
    for (let at = this.next; at < this.parts.length; at++) {
      const part = /** @type {{ offset: number, bytes: Uint8Array }} */ (this.parts[at])
      if (part.offset >= offset + bytes.length) return
      const from = Math.max(part.offset, offset)
      const to = Math.min(part.offset + part.bytes.length, offset + bytes.length)
      if (from < to) part.bytes.set(bytes.subarray(from - offset, to - offset), from - part.offset)
      this.next = at
    }
  }

  /** The memory of the buffer that begins there. @param {number} offset @param {number} length @returns {Uint8Array} */
  at(offset, length) {
    if (this.whole && offset + length <= this.total)
      return (this.parts[0]?.bytes ?? new Uint8Array()).subarray(offset, offset + length)
    let low = 0
    let high = this.parts.length - 1
    while (low <= high) {
      const middle = (low + high) >> 1
      const part = /** @type {{ offset: number, bytes: Uint8Array }} */ (this.parts[middle])
      if (part.offset === offset && part.bytes.length === length) return part.bytes
      if (part.offset < offset) low = middle + 1
      else high = middle - 1
    }
    throw new FormatError('a buffer does not lie where it should')
  }
}

export class Incoming {
  /** @param {any} welcome the agent's, with something to restore @param {object} root the script's state */
  constructor({ restore, bitExact }, root) {
    this.saved = restore
    this.bitExact = bitExact === true
    /** what is wrong with what was announced: told once everything has come */
    this.broken = ''
    /** @type {Map<string, number>} */
    const sizes = new Map()
    for (const { name, bytes } of restore.streams) sizes.set(name, Number(bytes))
    try {
      this.graph = new Uint8Array(sizes.get('graph') ?? 0)
      this.memory = new Memory(
        sizes.get('buffers') ?? 0,
        restore.meta?.buffers === undefined ? [] : restore.meta.buffers,
        root,
      )
    } catch (error) {
      this.broken = error instanceof Error ? error.message : String(error)
      this.graph = new Uint8Array()
      this.memory = new Memory(0, [], null)
    }
  }

  /** @param {string} stream @param {number} offset @param {Uint8Array} bytes */
  place(stream, offset, bytes) {
    if (this.broken !== '') return
    if (stream === 'buffers') this.memory.place(offset, bytes)
    else if (stream === 'graph') {
      if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes.length > this.graph.length)
        this.broken = 'the agent sent more of the checkpoint than it said'
      else this.graph.set(bytes, offset)
    }
  }
}
