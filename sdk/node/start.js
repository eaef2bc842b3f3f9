// @ts-check
/** The start of an attempt: the restore, if there is one, and the wait until it may run. */
import digests from './digest.cjs'
import { environment, environmentRefusals } from './environment.js'
import { FORMAT } from './graph/format.js'
import { refusalText } from './graph/refusals.js'
import { Restore } from './graph/restore.js'
import { Incoming } from './incoming.js'
import { exitJob, look, writeBuffers } from './talk.js'

/** @typedef {import('./talk.js').Talk} Talk */

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
  let digest = ''
  try {
    digest = digestOf(talk)
  } catch (error) {
    return refuse(
      talk,
      [],
      `the restored values cannot be looked at: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
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
const digestOf = (talk) => {
  const walk = look(talk)
  const digest = new digests.DigestOfBytes()
  digest.stream('graph')
  walk.run(talk.root, (bytes) => digest.update(bytes))
  writeBuffers(
    walk,
    () => digest.stream('buffers'),
    (bytes) => digest.update(bytes),
  )
  return digest.hex()
}
