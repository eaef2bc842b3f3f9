// @ts-check
'use strict'
/** Frames of the conversation with the agent: `u32le length of meta · u32le length of payload · meta as JSON · payload`. */

const HEAD = 8
const MOST_META = 1 << 20
const MOST_LARGE_META = 64 << 20
const MOST_PAYLOAD = 8 << 20

/** @param {object} meta @param {number} [payload] length of the payload that follows, bytes */
const frameHead = (meta, payload = 0) => {
  const text = Buffer.from(JSON.stringify(meta))
  if (text.length > MOST_LARGE_META) throw new RangeError(`a message of ${text.length} bytes is more than can be sent`)
  const head = Buffer.allocUnsafe(HEAD + text.length)
  head.writeUInt32LE(text.length, 0)
  head.writeUInt32LE(payload, 4)
  text.copy(head, HEAD)
  return head
}

/** Takes bytes as they come and gives whole frames; throws when a frame is not as agreed. */
class FrameReader {
  constructor() {
    /** @type {Buffer[]} */
    this.pieces = []
    this.length = 0
    this.mostMeta = MOST_LARGE_META
    /** @type {{ meta: number, payload: number } | null} */
    this.head = null
  }

  /** Whether a large meta may come: only `welcome` has one. @param {boolean} large */
  allowLarge(large) {
    this.mostMeta = large ? MOST_LARGE_META : MOST_META
  }

  /** @param {Buffer} bytes */
  push(bytes) {
    this.pieces.push(bytes)
    this.length += bytes.length
  }

  /** @param {number} bytes @returns {Buffer} */
  take(bytes) {
    let piece = /** @type {Buffer} */ (this.pieces[0] ?? Buffer.alloc(0))
    if (piece.length < bytes) {
      piece = Buffer.concat(this.pieces)
      this.pieces = [piece]
    }
    if (piece.length === bytes) this.pieces.shift()
    else this.pieces[0] = piece.subarray(bytes)
    this.length -= bytes
    return piece.subarray(0, bytes)
  }

  /** @returns {{ meta: any, payload: Buffer } | null} null: more bytes are needed */
  next() {
    if (this.head === null) {
      if (this.length < HEAD) return null
      const bytes = this.take(HEAD)
      this.head = { meta: bytes.readUInt32LE(0), payload: bytes.readUInt32LE(4) }
      if (this.head.meta > this.mostMeta || this.head.meta < 2)
        throw new Error(`a message of ${this.head.meta} bytes came, which is not agreed`)
      if (this.head.payload > MOST_PAYLOAD)
        throw new Error(`a payload of ${this.head.payload} bytes came, which is not agreed`)
    }
    const { meta, payload } = this.head
    if (this.length < meta + payload) return null
    this.head = null
    const read = JSON.parse(this.take(meta).toString('utf8'))
    if (typeof read !== 'object' || read === null || typeof read.t !== 'string')
      throw new Error('a message without a name came')
    return { meta: read, payload: payload === 0 ? Buffer.alloc(0) : this.take(payload) }
  }
}

module.exports = { frameHead, FrameReader }
