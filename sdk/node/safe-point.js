// @ts-check
/** At a safe point at which something is asked: the agent leads, and the job's thread answers until it may go on. */
import { environment } from './environment.js'
import { FORMAT } from './graph/format.js'
import { bufferStep, pathText } from './graph/path.js'
import { BUFFER_IN_PATH } from './incoming.js'
import { Sender } from './link.js'
import { exitJob, look, writeBuffers } from './talk.js'

/**
 * @typedef {import('./talk.js').Talk} Talk
 * @typedef {import('./graph/walk.js').Walk} Walk
 */

const MOST_TOPS = 10_000
const MOST_PATHS_BYTES = 4 << 20
const LONGEST_PATH = 100
const MOST_PLACED = 100_000

/** The connection is gone; the job runs on. */
class Lost extends Error {
  /** @param {boolean} forGood nobody is left who could connect again */
  constructor(forGood) {
    super('the connection is gone')
    this.forGood = forGood
  }
}

/**
 * Does what is asked, and returns when the job may go on. @param {Talk} talk @param {number} turn safe points passed
 * @param {'checkpoint' | null} asks @returns {boolean} false: nobody is left to speak with, now and later
 */
export const atSafePoint = (talk, turn, asks) => {
  const { link } = talk
  link.post({ t: 'safe-point', turn, asks })
  /** what undoes the job's preparations for a save @type {(() => void)[]} */
  const undo = []
  try {
    for (;;) {
      const message = link.receive()
      switch (message.t) {
        case 'probe':
          orRefuse(talk, message.id, () => answerProbe(talk, message.id))
          break
        case 'save':
          orRefuse(talk, message.id, () => answerSave(talk, message.id, undo))
          break
        case 'free':
          link.free.push(message.slot)
          break
        case 'exit':
          return exitJob(`this attempt ends: ${message.why}`)
        case 'go':
        case 'away':
        case 'lost':
          return true
        case 'dead':
          return false
        default:
        // `committed` and `save-failed` change nothing here: the agent leads on until `go`
      }
    }
  } catch (error) {
    if (error instanceof Lost) return !error.forGood
    throw error
  } finally {
    for (const each of undo) each()
  }
}

/** What goes wrong while the state is looked at refuses the answer; it never ends the job. @param {Talk} talk @param {number} id @param {() => void} answer */
const orRefuse = (talk, id, answer) => {
  try {
    answer()
  } catch (error) {
    if (error instanceof Lost) throw error
    const reason = `it could not be looked at: ${error instanceof Error ? error.message : String(error)}`
    const value = {
      path: 'state',
      type: 'error',
      reason,
      advice: 'try again; if it stays so, report it with the state that it needs',
    }
    talk.link.post({ t: 'frame', frame: { t: 'refused', id, values: [value] } })
  }
}

/** @param {Talk} talk @param {number} id */
const answerProbe = (talk, id) => {
  const started = performance.now()
  const ignore = () => {}
  let walk = look(talk)
  let graph = walk.run(talk.root, ignore)
  if (walk.refusals.any && talk.hasSuspend()) {
    // what the job closes before a save must not refuse the save
    /** @type {(() => void)[]} */
    const undo = []
    const failed = prepare(talk, undo)
    if (failed) return talk.link.post({ t: 'frame', frame: { t: 'refused', id, values: [failed] } })
    try {
      walk = look(talk)
      graph = walk.run(talk.root, ignore)
    } finally {
      for (const each of undo) each()
    }
  }
  const frame = walk.refusals.any
    ? { t: 'refused', id, values: walk.refusals.list() }
    : {
        t: 'probed',
        id,
        bytes: graph + walk.bufferBytes,
        objects: walk.objects.length,
        ms: Math.round(performance.now() - started),
      }
  return talk.link.post({ t: 'frame', frame })
}

/**
 * Lets the job prepare for a save. A failure there refuses the save; it does not end the job.
 * @param {Talk} talk @param {(() => void)[]} undo gets what undoes it @returns {import('./graph/refusals.js').RefusedValue | null}
 */
const prepare = (talk, undo) => {
  try {
    undo.push(talk.suspend())
    return null
  } catch (error) {
    const reason = `the function failed: ${error instanceof Error ? error.message : String(error)}`
    return { path: 'job.onSuspend', type: 'function', reason, advice: 'correct the function' }
  }
}

/** @param {Talk} talk @param {number} id @param {(() => void)[]} undo gets what undoes the job's preparations */
const answerSave = (talk, id, undo) => {
  const failed = undo.length === 0 ? prepare(talk, undo) : null
  if (failed) return talk.link.post({ t: 'frame', frame: { t: 'refused', id, values: [failed] } })
  const walk = look(talk)
  const graph = walk.run(talk.root, () => {})
  if (walk.refusals.any)
    return talk.link.post({ t: 'frame', frame: { t: 'refused', id, values: walk.refusals.list() } })
  const streams = [{ name: 'graph', bytes: graph }]
  if (walk.bufferBytes > 0) streams.push({ name: 'buffers', bytes: walk.bufferBytes })
  const frame = {
    t: 'save',
    id,
    values: tops(walk),
    environment: environment(),
    meta: {
      format: FORMAT,
      objects: walk.objects.length,
      customs: walk.customNumbers.length,
      clock: talk.clock.carried(),
      buffers: layout(walk),
    },
    streams,
  }
  talk.link.post({ t: 'begin-save', frame })
  const sender = new Sender(talk.link, id, (message) => {
    if (message.t === 'lost' || message.t === 'dead') throw new Lost(message.t === 'dead')
    if (message.t === 'exit') exitJob(`this attempt ends: ${message.why}`)
  })
  try {
    stream(talk, walk, graph, sender)
  } catch (error) {
    sender.drop()
    throw error
  }
  return talk.link.post({ t: 'end-save', id })
}

/** @param {Talk} talk @param {Walk} walk what was announced @param {number} graph its length @param {Sender} sender */
const stream = (talk, walk, graph, sender) => {
  sender.start('graph')
  const again = look(talk, walk.customs)
  const written = again.run(talk.root, (bytes) => sender.write(bytes))
  if (written !== graph || again.bufferBytes !== walk.bufferBytes || again.refusals.any)
    throw new Error('it changed while it was written (does toPortal() change something?)')
  writeBuffers(
    walk,
    () => sender.start('buffers'),
    (bytes) => sender.write(bytes),
  )
  sender.flush()
}

/** Where each large buffer lies, and how the script's own one is found, as long as that is not too much to say. @param {Walk} walk */
const layout = (walk) => {
  if (walk.buffers.length > MOST_PLACED) return null
  let room = MOST_PATHS_BYTES
  return walk.buffers.map(({ offset, bytes, number }) => {
    const path = room > 0 ? (walk.originOf[number]?.path() ?? null) : null
    const plain =
      path && path.length <= LONGEST_PATH
        ? path.map((step) => (step === bufferStep ? BUFFER_IN_PATH : typeof step === 'number' ? String(step) : step))
        : null
    const simple = plain?.every((step) => typeof step === 'string' || step === BUFFER_IN_PATH) ? plain : null
    if (simple) room -= JSON.stringify(simple).length
    return /** @type {import('./incoming.js').PlacedBuffer} */ ([offset, bytes.length, simple ?? null])
  })
}

/** The top-level values with what each takes; shared ones count where they are met first. @param {Walk} walk */
const tops = (walk) => {
  const list = walk.tops.slice(0, MOST_TOPS).map(({ step, kind, bytes }) => ({ path: pathText([step]), kind, bytes }))
  const rest = walk.tops.length - list.length
  if (rest > 0) list.push({ path: 'state', kind: `${rest} more values`, bytes: 0 })
  return list
}
