// @ts-check
/** What the start and a safe point have in common: whom they speak with, and how the state's two streams are made. */
import { ALIGNMENT } from './graph/format.js'
import { Walk } from './graph/walk.js'

/**
 * @typedef {{
 *   link: import('./link.js').Link, root: object, classes: import('./graph/classes.js').Classes,
 *   origins: import('./graph/origins.js').Origins, clock: { carried(): number, setCarried(ms: number): void },
 *   suspend(): () => void, hasSuspend(): boolean
 * }} Talk
 */

/** The job was told to end, or cannot begin. */
const EXIT_CODE = 75

/** @param {string} why @returns {never} */
export const exitJob = (why) => {
  process.stderr.write(`portal: ${why}\n`)
  process.exit(EXIT_CODE)
}

/** @param {Talk} talk @param {Map<object, unknown>} [customs] */
export const look = (talk, customs) => new Walk(talk.classes, talk.origins, customs ? { customs } : {})

/** @param {Walk} walk @param {() => void} start @param {(bytes: Uint8Array) => void} write */
export const writeBuffers = (walk, start, write) => {
  if (walk.bufferBytes === 0) return
  start()
  let at = 0
  for (const { offset, bytes } of walk.buffers) {
    if (offset > at) write(padding.subarray(0, offset - at))
    write(bytes)
    at = offset + bytes.length
  }
}
const padding = new Uint8Array(ALIGNMENT)
