// @ts-check
/**
 * How the graph is written down: one record an object, in the order of first visit (breadth first), and in them values.
 * The bytes depend on nothing but the values, so that their hash can be the digest. `docs/sdk-node.md` describes it.
 */

export const FORMAT = 1
/** An ArrayBuffer from this size on lies in the stream `buffers`, below it in the record itself. */
export const OUT_OF_BAND = 4096
/** Where a buffer begins in the stream `buffers`. */
export const ALIGNMENT = 64

export const Tag = Object.freeze({
  undefined: 0,
  null: 1,
  true: 2,
  false: 3,
  integer: 4,
  double: 5,
  utf8: 6,
  utf16: 7,
  bigint: 8,
  wellKnownSymbol: 9,
  symbolFor: 10,
  namedSymbol: 11,
  ref: 12,
  hole: 13,
  namedClass: 14,
  builtinClass: 15,
})

export const Kind = Object.freeze({
  object: 1,
  array: 2,
  map: 3,
  set: 4,
  date: 5,
  regexp: 6,
  error: 7,
  boxed: 8,
  arrayBuffer: 9,
  typedArray: 10,
  dataView: 11,
  url: 12,
  custom: 13,
  pooled: 14,
})
/** @type {Record<number, string>} */
export const kindNames = Object.fromEntries(Object.entries(Kind).map(([name, kind]) => [kind, name]))

export const Flag = Object.freeze({ prototype: 1, notExtensible: 2, properties: 4, described: 8, fresh: 16, moved: 32 })
export const Prototype = Object.freeze({ null: 0, builtin: 1, named: 2, ref: 3 })
export const ArrayMode = Object.freeze({ values: 0, doubles: 1, sparse: 2, described: 3 })
export const Attribute = Object.freeze({ writable: 1, enumerable: 2, configurable: 4, all: 7 })

const NAN = Uint8Array.of(0, 0, 0, 0, 0, 0, 0xf8, 0x7f)
const STRING_PIECE = 1 << 20

/** Collects bytes and hands them on in pieces; a piece is valid only until `flush` returns. */
export class Writer {
  /** @param {(bytes: Uint8Array) => void} flush @param {number} [size] bytes held before they are handed on */
  constructor(flush, size = 1 << 18) {
    this.flush = flush
    this.buffer = Buffer.allocUnsafeSlow(size)
    this.view = new DataView(this.buffer.buffer)
    this.position = 0
    /** bytes handed on so far */
    this.handed = 0
  }

  get total() {
    return this.handed + this.position
  }

  end() {
    if (this.position > 0) this.flush(this.buffer.subarray(0, this.position))
    this.handed += this.position
    this.position = 0
  }

  /** @param {number} bytes */
  room(bytes) {
    if (this.buffer.length - this.position < bytes) this.end()
  }

  /** @param {number} value */
  byte(value) {
    if (this.position === this.buffer.length) this.end()
    this.buffer[this.position++] = value
  }

  /** @param {number} value an integer from 0 to 2^53 - 1 */
  count(value) {
    this.room(8)
    while (value >= 0x80) {
      this.buffer[this.position++] = (value % 0x80) | 0x80
      value = Math.floor(value / 0x80)
    }
    this.buffer[this.position++] = value
  }

  /** @param {number} value */
  double(value) {
    this.room(8)
    if (value !== value) this.buffer.set(NAN, this.position)
    else this.view.setFloat64(this.position, value, true)
    this.position += 8
  }

  /** @param {Uint8Array} bytes */
  bytes(bytes) {
    if (bytes.length > this.buffer.length - this.position) this.end()
    if (bytes.length > this.buffer.length) {
      this.flush(bytes)
      this.handed += bytes.length
      return
    }
    this.buffer.set(bytes, this.position)
    this.position += bytes.length
  }

  /** A string with its tag: UTF-8, or UTF-16 where a lone surrogate would be lost. @param {string} value */
  string(value) {
    const length = value.length
    if (length < 64) {
      this.room(length + 2)
      const { buffer, position } = this
      let at = 0
      for (; at < length; at++) {
        const code = value.charCodeAt(at)
        if (code >= 0x80) break
        buffer[position + 2 + at] = code
      }
      if (at === length) {
        buffer[position] = Tag.utf8
        buffer[position + 1] = length
        this.position = position + 2 + length
        return
      }
    }
    const encoding = value.isWellFormed() ? 'utf8' : 'utf16le'
    this.byte(encoding === 'utf8' ? Tag.utf8 : Tag.utf16)
    this.count(Buffer.byteLength(value, encoding))
    for (let at = 0; at < length;) {
      let end = Math.min(at + STRING_PIECE, length)
      // a pair of surrogates is never cut in two
      if (end < length && (value.charCodeAt(end - 1) & 0xfc00) === 0xd800) end++
      this.bytes(Buffer.from(value.slice(at, end), encoding))
      at = end
    }
  }
}

/** Reads what a `Writer` wrote; bytes that end too early or say too much are an error, never a guess. */
export class Reader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.position = 0
  }

  get atEnd() {
    return this.position === this.buffer.length
  }

  /** @param {number} bytes */
  need(bytes) {
    if (bytes > this.buffer.length - this.position) throw new FormatError('it ends too early')
  }

  byte() {
    this.need(1)
    return /** @type {number} */ (this.buffer[this.position++])
  }

  count() {
    let value = 0
    for (let scale = 1; scale <= 2 ** 49; scale *= 0x80) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) break
        return value
      }
    }
    throw new FormatError('a number is too large')
  }

  /** A count of things that each take at least one byte. */
  countOfBytes() {
    const value = this.count()
    this.need(value)
    return value
  }

  double() {
    this.need(8)
    const value = this.view.getFloat64(this.position, true)
    this.position += 8
    return value
  }

  /** @param {number} length */
  bytes(length) {
    this.need(length)
    const bytes = this.buffer.subarray(this.position, this.position + length)
    this.position += length
    return bytes
  }

  /** @param {number} tag */
  string(tag) {
    const length = this.countOfBytes()
    const start = this.position
    this.position += length
    if (tag === Tag.utf8) {
      if (length < 24) {
        let text = ''
        for (let at = start; at < this.position; at++) {
          const code = /** @type {number} */ (this.buffer[at])
          if (code >= 0x80) return this.buffer.toString('utf8', start, this.position)
          text += String.fromCharCode(code)
        }
        return text
      }
      return this.buffer.toString('utf8', start, this.position)
    }
    if (tag === Tag.utf16) return this.buffer.toString('utf16le', start, this.position)
    throw new FormatError('a string was expected')
  }

  text() {
    return this.string(this.byte())
  }
}

/** The graph's bytes are not what this SDK writes. */
export class FormatError extends Error {
  /** @param {string} what */
  constructor(what) {
    super(`the checkpoint's graph cannot be read: ${what}`)
    this.name = 'FormatError'
  }
}
