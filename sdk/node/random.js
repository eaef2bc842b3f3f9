// @ts-check
/**
 * A small seeded generator whose state is four numbers, so that it is carried when it is part of the state. (The state of
 * `Math.random` lies in the engine, where nobody can read it.) sfc32 by Chris Doty-Humphrey: passes PractRand, period about 2^127.
 */
export class SeededRandom {
  /** @param {number | string} [seed] */
  constructor(seed = 0) {
    const text = String(seed)
    this.a = hash(text, 0x9e3779b9)
    this.b = hash(text, 0x243f6a88)
    this.c = hash(text, 0xb7e15162)
    this.d = 1
    for (let round = 0; round < 15; round++) this.bits()
  }

  /** 32 random bits, from 0 to 2^32 - 1. @returns {number} */
  bits() {
    const sum = (((this.a + this.b) | 0) + this.d) | 0
    this.d = (this.d + 1) | 0
    this.a = this.b ^ (this.b >>> 9)
    this.b = (this.c + (this.c << 3)) | 0
    this.c = (((this.c << 21) | (this.c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  /** As `Math.random`: from 0 up to but not including 1, with 53 bits. @returns {number} */
  next() {
    return ((this.bits() >>> 5) * 67108864 + (this.bits() >>> 6)) / 9007199254740992
  }

  /** A whole number from 0 up to but not including `end`. @param {number} end at most 2^53 - 1 @returns {number} */
  integer(end) {
    return Math.floor(this.next() * end)
  }
}

/** FNV-1a with a start of its own, mixed at the end (murmur3's finish). @param {string} text @param {number} start */
const hash = (text, start) => {
  let value = start ^ 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) | 0
}
