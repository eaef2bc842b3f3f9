// @ts-check
/** The conversation with the agent, as the job's thread leads it: the start, and what is asked at a safe point. */
import { createRequire } from 'node:module'
import { environment, environmentRefusals } from './environment.js'
import { ALIGNMENT, FORMAT } from './graph/format.js'
import { bufferStep, pathText } from './graph/path.js'
import { refusalText } from './graph/refusals.js'
import { Restore } from './graph/restore.js'
import { Walk } from './graph/walk.js'
import { BUFFER_IN_PATH, Incoming } from './incoming.js'
import { Sender } from './link.js'

const require = createRequire(import.meta.url)
const { DigestOfBytes } = /** @type {typeof import('./digest.cjs')} */ (require('./digest.cjs'))

/** The job was told to end, or cannot begin. */
export const EXIT_CODE = 75
const MOST_TOPS = 10_000
const MOST_PATHS_BYTES = 4 << 20
const LONGEST_PATH = 100
const MOST_PLACED = 100_000

/**
 * @typedef {{
 *   link: import('./link.js').Link, root: object, classes: import('./graph/classes.js').Classes,
 *   origins: import('./graph/origins.js').Origins, clock: { carried(): number, setCarried(ms: number): void },
 *   suspend(): () => void, hasSuspend(): boolean
 * }} Talk
 */

/** The connection is gone; the job runs on. */
class Lost extends Error {}

/** @param {string} why @returns {never} */
export const exitJob = (why) => {
  process.stderr.write(`portal: ${why}\n`)
  process.exit(EXIT_CODE)
}

/* the start */

/**
 * Restores the state if there is one, and returns once the attempt may run. Until then the thread stands still.
 * @param {Talk} talk @returns {boolean} whether there was one
 */
export const begin = (talk) => {
  /** @type {Incoming | null} */
  let incoming = null
  let ready = false
  let restored = false
  for (;;) {
    const message = talk.link.receive()
    switch (message.t) {
      case 'welcome':
        if (ready) break
        if (message.restore) incoming = new Incoming(message, talk.root)
        else {
          ready = true
          talk.link.post({ t: 'ready', digest: null, generation: message.generation })
        }
        break
      case 'data':
        incoming?.place(message.stream, message.offset, slotBytes(talk, message))
        talk.link.post({ t: 'free', slot: message.slot })
        break
      case 'verified':
        if (incoming) {
          restore(talk, incoming, message.generation)
          ready = true
          restored = true
          incoming = null
        }
        break
      case 'lost':
        if (!ready) incoming = null
        break
      case 'damaged':
        return exitJob(`the checkpoint is damaged and was not opened: ${message.what}`)
      case 'exit':
        return exitJob(`this attempt ends: ${message.why}`)
      case 'dead':
        return exitJob('the thread that speaks with the agent is gone')
      case 'run':
        return restored
      default:
    }
  }
}

/** @param {Talk} talk @param {{ slot: number, bytes: number }} message */
const slotBytes = (talk, { slot, bytes }) => /** @type {Uint8Array} */ (talk.link.slots[slot]).subarray(0, bytes)

/** @param {Talk} talk @param {Incoming} incoming @param {number} generation the connection over which it came */
const restore = (talk, incoming, generation) => {
  const { saved, bitExact, graph, memory } = incoming
  const refused = environmentRefusals(saved.environment ?? {}, environment(), bitExact)
  if (refused.length > 0) return refuse(talk, refused, 'the environment cannot take the state')
  const meta = saved.meta ?? {}
  if (meta.format !== FORMAT)
    return refuse(
      talk,
      [],
      `the state was written in format ${meta.format}, and this SDK reads ${FORMAT}: use the SDK that wrote it`,
    )
  if (incoming.broken !== '') return refuse(talk, [], incoming.broken)
  const counts = { objects: Number(meta.objects), customs: Number(meta.customs) }
  const restoring = new Restore(graph, memory, counts, talk.classes, talk.origins)
  try {
    restoring.run(talk.root)
  } catch (error) {
    return refuse(talk, [], error instanceof Error ? error.message : String(error))
  }
  if (restoring.refusals.any)
    return refuse(talk, restoring.refusals.list(), 'the state cannot be put back into what the script holds')
  talk.clock.setCarried(Number(meta.clock) || 0)
  const digest = digestOf(talk)
  if (digest !== saved.digest)
    return refuse(
      talk,
      difference(talk, graph),
      `the restored values have another digest (${digest}) than the saved ones (${saved.digest})`,
    )
  talk.link.post({ t: 'ready', digest, generation, frame: { t: 'restored', digest } })
  return undefined
}

/** @param {Talk} talk @param {import('./graph/refusals.js').RefusedValue[]} values @param {string} why @returns {never} */
const refuse = (talk, values, why) => {
  talk.link.post({ t: 'frame', frame: { t: 'restore-refused', values, why } })
  process.stderr.write(`portal: ${why}\n${values.length > 0 ? `${refusalText(values)}\n` : ''}`)
  for (;;) {
    const message = talk.link.receive()
    if (message.t === 'exit') return exitJob(`this attempt ends: ${message.why}`)
    if (message.t === 'lost' || message.t === 'dead')
      return exitJob('this attempt ends: its state could not be restored')
  }
}

/** The first object that did not come back equal, if it is seen in the graph. @param {Talk} talk @param {Uint8Array} graph as it was saved */
const difference = (talk, graph) => {
  let offset = 0
  let found = -1
  look(talk).run(talk.root, (bytes) => {
    if (found < 0 && Buffer.compare(bytes, graph.subarray(offset, offset + bytes.length)) !== 0) {
      const at = bytes.findIndex((byte, index) => byte !== graph[offset + index])
      found = offset + at
    }
    offset += bytes.length
  })
  if (found < 0) return []
  const reason = 'it did not come back equal'
  return [
    {
      ...look(talk).at(talk.root, found),
      reason,
      advice: 'see to it that fromPortal() gives back what toPortal() said',
    },
  ]
}

/** The digest of the live values (K-WHOLE-3). @param {Talk} talk */
export const digestOf = ({ root, classes, origins }) => {
  const walk = new Walk(classes, origins)
  const digest = new DigestOfBytes()
  digest.stream('graph')
  walk.run(root, (bytes) => digest.update(bytes))
  writeBuffers(
    walk,
    () => digest.stream('buffers'),
    (bytes) => digest.update(bytes),
  )
  return digest.hex()
}

/** @param {Walk} walk @param {() => void} start @param {(bytes: Uint8Array) => void} write */
const writeBuffers = (walk, start, write) => {
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

/* at a safe point */

/**
 * Does what is asked, and returns when the job may go on. @param {Talk} talk @param {number} turn safe points passed
 * @param {'checkpoint' | null} asks
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
          answerProbe(talk, message.id)
          break
        case 'save':
          answerSave(talk, message.id, undo)
          break
        case 'free':
          link.free.push(message.slot)
          break
        case 'exit':
          return exitJob(`this attempt ends: ${message.why}`)
        case 'go':
        case 'away':
        case 'lost':
        case 'dead':
          return undefined
        default:
        // `committed` and `save-failed` change nothing here: the agent leads on until `go`
      }
    }
  } catch (error) {
    if (error instanceof Lost) return undefined
    throw error
  } finally {
    for (const each of undo) each()
  }
}

/** @param {Talk} talk @param {Map<object, unknown>} [customs] */
const look = (talk, customs) => new Walk(talk.classes, talk.origins, customs ? { customs } : {})

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
    walk = look(talk)
    graph = walk.run(talk.root, ignore)
    for (const each of undo) each()
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
    if (message.t === 'lost' || message.t === 'dead') throw new Lost()
    if (message.t === 'exit') exitJob(`this attempt ends: ${message.why}`)
  })
  sender.start('graph')
  look(talk, walk.customs).run(talk.root, (bytes) => sender.write(bytes))
  writeBuffers(
    walk,
    () => sender.start('buffers'),
    (bytes) => sender.write(bytes),
  )
  sender.flush()
  return talk.link.post({ t: 'end-save', id })
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
