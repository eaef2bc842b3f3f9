// @ts-check
'use strict'
/**
 * The digest of a state (K-WHOLE-3): of the walker's streams, chunk by chunk, so that the hashes made for the save serve
 * it too. The streams depend on nothing but the values.
 */
const { createHash } = require('node:crypto')

const CHUNK = 1 << 16
const zeros = Buffer.alloc(CHUNK)
const zeroHash = Buffer.alloc(32)

/** @param {Uint8Array} chunk */
const isZero = (chunk) => chunk[0] === 0 && zeros.compare(chunk, 0, chunk.length, 0, chunk.length) === 0

/** @param {Uint8Array} chunk */
const sha256 = (chunk) => createHash('sha256').update(chunk).digest()

class StateDigest {
  constructor() {
    this.hash = createHash('sha256').update('portal node state 1\n')
    this.bytes = 0
  }

  /** @param {string} name */
  stream(name) {
    this.endStream()
    this.hash.update(`${name}\n`)
    this.open = true
  }

  endStream() {
    if (this.open) this.hash.update(`\n${this.bytes}\n`)
    this.bytes = 0
    this.open = false
  }

  /** The next chunk of the stream: its sha256, null for zeros. @param {Buffer | null} hash @param {number} bytes its length */
  chunk(hash, bytes) {
    this.hash.update(hash ?? zeroHash)
    this.bytes += bytes
  }

  hex() {
    this.endStream()
    return this.hash.digest('hex')
  }
}

/** The digest of streams whose bytes are at hand, in pieces of any length. */
class DigestOfBytes {
  constructor() {
    this.digest = new StateDigest()
    this.part = Buffer.allocUnsafeSlow(CHUNK)
    this.filled = 0
  }

  /** @param {string} name */
  stream(name) {
    this.endStream()
    this.digest.stream(name)
  }

  /** @param {Uint8Array} bytes */
  update(bytes) {
    let at = 0
    if (this.filled > 0) {
      at = Math.min(CHUNK - this.filled, bytes.length)
      this.part.set(bytes.subarray(0, at), this.filled)
      this.filled += at
      if (this.filled < CHUNK) return
      this.chunk(this.part)
      this.filled = 0
    }
    for (; bytes.length - at >= CHUNK; at += CHUNK) this.chunk(bytes.subarray(at, at + CHUNK))
    if (at < bytes.length) {
      this.part.set(bytes.subarray(at), 0)
      this.filled = bytes.length - at
    }
  }

  /** @param {Uint8Array} chunk */
  chunk(chunk) {
    this.digest.chunk(isZero(chunk) ? null : sha256(chunk), chunk.length)
  }

  endStream() {
    if (this.filled > 0) this.chunk(this.part.subarray(0, this.filled))
    this.filled = 0
  }

  hex() {
    this.endStream()
    return this.digest.hex()
  }
}

module.exports = { CHUNK, DigestOfBytes, StateDigest, isZero, sha256 }
