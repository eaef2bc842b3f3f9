// @ts-check
'use strict'
/**
 * The thread beside the job's own: it keeps the socket to the agent, sets the flag that the job's thread looks at, and
 * carries bytes between the two through shared memory. It never keeps the process alive.
 *
 * To the job's thread it says: the agent's messages as they came, and `data` (bytes in a slot), `free` (a slot), `lost`
 * (the connection broke while talking), `away` (nobody answers).
 */
const { closeSync, openSync, readSync, writeSync } = require('node:fs')
const { connect } = require('node:net')
const { workerData } = require('node:worker_threads')
const { CHUNK, StateDigest, isZero, sha256 } = require('./digest.cjs')
const { FrameReader, frameHead } = require('./frames.cjs')
const { ASKED, BEAT, DONE, SLOTS, SLOT_BYTES, TOTAL, TURNS, WAKE, WANTED } = require('./shared.cjs')

const LOOK_MS = 100
const COUNTERS_MS = 250
const AWAY_TRY_MS = 2_000
const AWAY_PAUSE_MS = 5_000

const { port, control, ring, socketPath, flagPath, hello } = workerData
const flags = new Uint8Array(control)
const wake = new Int32Array(control)
const numbers = new Float64Array(control)
const slots = Array.from({ length: SLOTS }, (_, slot) => Buffer.from(ring, slot * SLOT_BYTES, SLOT_BYTES))

/** @type {'starting' | 'waiting' | 'running'} `waiting`: the values are in place */
let phase = 'starting'
/** what the job's thread answered in `restored` @type {string | null} */
let restoredDigest = null
/** the job's thread is at a safe point and listens */
let talking = false
/** the job itself asked for the checkpoint that is talked about */
let wanted = false
/** `run` came before the job's thread said that its values are in place */
let mayRun = false
/** @type {import('node:net').Socket | null} */
let socket = null
/** of the save that is under way on this connection @type {InstanceType<typeof StateDigest> | null} */
let digest = null
/** counts the connections: what the job's thread answers to an older one is not for a newer one */
let generation = 0
let quietUntil = 0

/** @param {object} message */
const tell = (message) => {
  port.postMessage(message)
  Atomics.add(wake, WAKE, 1)
  Atomics.notify(wake, WAKE)
}

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/* the shared file */

let file = -1
const byte = Buffer.alloc(1)
const counters = Buffer.alloc(24)

const openFlag = () => {
  try {
    if (file < 0) file = openSync(flagPath, 'r+')
  } catch {
    // the agent makes it before the job; without it the job runs on and nothing is asked by it
  }
  return file >= 0
}

const look = () => {
  if (!openFlag()) return
  try {
    readSync(file, byte, 0, 1, 0)
  } catch {
    closeSync(file)
    file = -1
    return
  }
  // while the agent is away the flag may stay set; the job is not stopped for it at every turn
  Atomics.store(flags, ASKED, byte[0] !== 0 && Date.now() >= quietUntil ? 1 : 0)
}

const writeCounters = () => {
  if (!openFlag()) return
  const before = Buffer.from(counters)
  counters.writeBigUInt64LE(BigInt(numbers[TURNS] ?? 0), 0)
  counters.writeDoubleLE(numbers[DONE] ?? NaN, 8)
  counters.writeDoubleLE(numbers[TOTAL] ?? NaN, 16)
  if (before.equals(counters)) return
  try {
    writeSync(file, counters, 0, counters.length, 8)
  } catch {
    // a full disk must not end the job; the next round tries again
    counters.fill(0)
  }
}

/* bytes from the agent to the job's thread */

const freeSlots = Array.from({ length: SLOTS }, (_, slot) => slot)
/** @type {((slot: number) => void)[]} */
const slotWaiters = []
/** @returns {Promise<number>} */
const takeSlot = () => {
  const slot = freeSlots.pop()
  return slot !== undefined ? Promise.resolve(slot) : new Promise((resolve) => slotWaiters.push(resolve))
}
/** @param {number} slot */
const giveSlot = (slot) => {
  const waiter = slotWaiters.shift()
  if (waiter) waiter(slot)
  else freeSlots.push(slot)
}

/** @param {any} meta @param {Buffer} payload */
const passData = async (meta, payload) => {
  for (let at = 0; at < payload.length; at += SLOT_BYTES) {
    const slot = await takeSlot()
    const bytes = payload.copy(/** @type {Buffer} */ (slots[slot]), 0, at, Math.min(at + SLOT_BYTES, payload.length))
    tell({ t: 'data', stream: meta.stream, offset: meta.offset + at, slot, bytes })
  }
}

/* the connection */

/** @param {number} until on `Date.now()` @returns {Promise<import('node:net').Socket | null>} */
const connectUntil = async (until) => {
  for (let pause = 50; ; pause = Math.min(pause * 2, 1_000)) {
    const found = await new Promise((resolve) => {
      const trying = connect(socketPath)
      trying.once('connect', () => resolve(trying))
      trying.once('error', () => resolve(null))
    })
    if (found) return found
    if (Date.now() + pause > until) return null
    await sleep(pause)
  }
}

/** Says hello and listens until the connection ends. @param {import('node:net').Socket} opened */
const attach = (opened) => {
  socket = opened
  generation++
  mayRun = false
  const reader = new FrameReader()
  /** @type {Promise<unknown>} */
  let work = Promise.resolve()
  let queued = 0
  opened.on('data', (bytes) => {
    reader.push(bytes)
    try {
      for (let frame = reader.next(); frame !== null; frame = reader.next()) {
        const { meta, payload } = frame
        if (meta.t === 'welcome') reader.allowLarge(false)
        queued++
        opened.pause()
        work = work
          .then(() => (socket === opened ? onFrame(meta, payload) : undefined))
          .then(() => {
            queued--
            return queued === 0 ? opened.resume() : opened
          })
          .catch(() => opened.destroy())
      }
    } catch {
      // what cannot be read is no agent of ours: the connection ends, the job runs on
      opened.destroy()
    }
  })
  const closed = new Promise((resolve) => opened.once('close', () => resolve(undefined)))
  opened.on('error', () => opened.destroy())
  opened.on('end', () => opened.destroy())
  const coming =
    phase === 'running'
      ? { again: true, turn: numbers[TURNS] }
      : phase === 'waiting'
        ? { again: true, waiting: true, digest: restoredDigest, turn: numbers[TURNS] }
        : {}
  opened.write(frameHead({ ...hello, ...coming }))
  void closed.then(() => {
    if (socket === opened) socket = null
    if (talking) wantAgain()
    if (talking || phase === 'starting') tell({ t: 'lost' })
    talking = false
    digest = null
    return undefined
  })
  return closed
}

/** What the job asked for and did not get is asked for again after a while. */
const wantAgain = () => {
  if (wanted) setTimeout(() => Atomics.store(flags, WANTED, 1), AWAY_PAUSE_MS)
  wanted = false
}

const startRunning = () => {
  phase = 'running'
  // what is asked already is seen at the very first safe point
  look()
  tell({ t: 'run' })
}

/** @param {any} meta @param {Buffer} payload */
const onFrame = (meta, payload) => {
  switch (meta.t) {
    case 'ask':
      if (Date.now() >= quietUntil) Atomics.store(flags, ASKED, 1)
      return undefined
    case 'welcome':
      return phase === 'starting' ? tell({ ...meta, generation }) : undefined
    case 'data':
      return phase === 'starting' ? passData(meta, payload) : undefined
    case 'verified':
      return phase === 'starting' ? tell({ ...meta, generation }) : undefined
    case 'damaged':
      return phase === 'starting' ? tell(meta) : undefined
    case 'run':
      if (phase === 'starting') mayRun = true
      if (phase !== 'waiting') return undefined
      return startRunning()
    case 'exit':
      tell(meta)
      // the job's thread hears it at its next safe point, asked or not
      if (phase === 'running' && !talking) Atomics.store(flags, WANTED, 1)
      return undefined
    case 'go':
      if (!talking) return undefined
      talking = false
      wanted = false
      look()
      return tell(meta)
    default:
      return talking ? tell(meta) : undefined
  }
}

const keepConnected = async () => {
  for (let pause = 0; ; pause = Math.min(pause + 1_000, AWAY_PAUSE_MS)) {
    const opened = socket === null ? await connectUntil(phase === 'running' ? Date.now() : Infinity) : null
    if (opened && socket === null) {
      pause = 0
      await attach(opened)
    } else opened?.destroy()
    await sleep(phase === 'running' ? pause : LOOK_MS)
  }
}

/* what the job's thread asks for */

let nextChunk = 0
let streamName = ''

/** @param {any} message */
const sendChunks = async ({ id, stream, slot, bytes }) => {
  const opened = socket
  if (!opened || !digest) return tell({ t: 'free', slot })
  if (stream !== streamName) {
    streamName = stream
    nextChunk = 0
    digest.stream(stream)
  }
  const memory = /** @type {Buffer} */ (slots[slot])
  const lengths = []
  const hashes = []
  const pieces = []
  let payload = 0
  let from = -1
  for (let at = 0; at < bytes; at += CHUNK) {
    const end = Math.min(at + CHUNK, bytes)
    const chunk = memory.subarray(at, end)
    lengths.push(chunk.length)
    if (isZero(chunk)) {
      digest.chunk(null, chunk.length)
      hashes.push(null)
      if (from >= 0) pieces.push(memory.subarray(from, at))
      from = -1
    } else {
      const hash = sha256(chunk)
      digest.chunk(hash, chunk.length)
      hashes.push(hash.toString('hex'))
      payload += chunk.length
      if (from < 0) from = at
    }
  }
  if (from >= 0) pieces.push(memory.subarray(from, bytes))
  const first = nextChunk
  nextChunk += lengths.length
  opened.cork()
  let written = write(opened, frameHead({ t: 'chunks', id, stream, first, bytes: lengths, sha256: hashes }, payload))
  for (const piece of pieces) written = write(opened, piece)
  opened.uncork()
  // the next slot is hashed while this one is on its way
  void written.then(() => {
    tell({ t: 'free', slot })
    return undefined
  })
  if (opened.writableLength > SLOT_BYTES) await written
  return undefined
}

/** Resolves when the bytes are given to the kernel, or never will be. @param {import('node:net').Socket} opened @param {Uint8Array} bytes */
const write = (opened, bytes) => new Promise((resolve) => opened.write(bytes, () => resolve(undefined)))

/** @param {any} message */
const onMessage = async (message) => {
  switch (message.t) {
    case 'free':
      return giveSlot(message.slot)
    case 'ready':
      phase = 'waiting'
      restoredDigest = message.digest
      if (message.generation !== generation) {
        // the agent was lost meanwhile and knows nothing of it: it is told that the values are in place
        socket?.destroy()
        return undefined
      }
      if (message.frame) socket?.write(frameHead(message.frame))
      return mayRun ? startRunning() : undefined
    case 'safe-point': {
      writeCounters()
      if (!socket) {
        const opened = await connectUntil(Date.now() + AWAY_TRY_MS)
        if (opened && !socket) void attach(opened)
        else opened?.destroy()
      }
      if (!socket) {
        quietUntil = Date.now() + AWAY_PAUSE_MS
        Atomics.store(flags, ASKED, 0)
        wanted = message.asks !== null
        wantAgain()
        return tell({ t: 'away' })
      }
      talking = true
      wanted = message.asks !== null
      socket.write(frameHead({ t: 'safe-point', turn: message.turn, asks: message.asks }))
      return undefined
    }
    case 'begin-save':
      if (!talking) return undefined
      digest = new StateDigest()
      streamName = ''
      socket?.write(frameHead(message.frame))
      return undefined
    case 'chunks':
      return sendChunks(message)
    case 'end-save':
      if (digest) socket?.write(frameHead({ t: 'saved', id: message.id, digest: digest.hex() }))
      digest = null
      return undefined
    default:
      // a refusal in the middle of a save ends that save
      digest = null
      // an answer to a question of a connection that is gone is nobody's
      if (talking || phase === 'starting') socket?.write(frameHead(message.frame))
      return undefined
  }
}

let order = Promise.resolve()
port.on('message', (/** @type {any} */ message) => {
  // a slot given back must not wait behind what waits for it
  if (message.t === 'free') giveSlot(message.slot)
  else
    order = order
      .then(() => onMessage(message))
      .catch((error) => {
        socket?.destroy()
        tell({ t: 'lost', why: String(error) })
      })
})
process.on('uncaughtException', () => socket?.destroy())

setInterval(() => {
  Atomics.add(wake, BEAT, 1)
  look()
}, LOOK_MS)
setInterval(writeCounters, COUNTERS_MS)
void keepConnected()
