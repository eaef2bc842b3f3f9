// @ts-check
/** The job's thread's side of the worker: asks it, waits for it, and shares memory with it. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'

const { BEAT, DONE, SLOTS, SLOT_BYTES, TOTAL, TURNS, WAKE } = /** @type {typeof import('./shared.cjs')} */ (
  createRequire(import.meta.url)('./shared.cjs')
)

const LOOK_MS = 1_000
const MOST_SILENT_LOOKS = 30

export class Link {
  /** @param {{ socketPath: string, flagPath: string, hello: object }} options @param {SharedArrayBuffer} control */
  constructor({ socketPath, flagPath, hello }, control) {
    this.flagPath = flagPath
    this.wake = new Int32Array(control)
    this.numbers = new Float64Array(control)
    const ring = new SharedArrayBuffer(SLOTS * SLOT_BYTES)
    this.slots = Array.from({ length: SLOTS }, (_, slot) => new Uint8Array(ring, slot * SLOT_BYTES, SLOT_BYTES))
    this.free = Array.from({ length: SLOTS }, (_, slot) => slot)
    const { port1, port2 } = new MessageChannel()
    this.port = port1
    this.worker = new Worker(new URL('./worker.cjs', import.meta.url), {
      workerData: { port: port2, control, ring, socketPath, flagPath, hello },
      transferList: [port2],
      // nothing of the job's own preparation (loaders, NODE_OPTIONS) belongs into this thread
      execArgv: [],
      env: {},
      name: 'portal',
    })
    // a failure of the thread must not end the job; it is seen as a connection that is gone
    this.worker.on('error', () => {})
    this.worker.unref()
    this.port.unref()
    process.once('exit', () => this.writeCounters())
  }

  /** @param {object} message */
  post(message) {
    this.port.postMessage(message)
  }

  /** The worker's next message; stops this thread until there is one. `dead`: the worker is no more. @returns {any} */
  receive() {
    let beat = -1
    let silent = 0
    for (;;) {
      const seen = Atomics.load(this.wake, WAKE)
      const found = receiveMessageOnPort(this.port)
      if (found) return found.message
      if (Atomics.wait(this.wake, WAKE, seen, LOOK_MS) !== 'timed-out') continue
      // a process that is frozen stands still as a whole, so looks are counted, not time
      const now = Atomics.load(this.wake, BEAT)
      silent = now === beat ? silent + 1 : 0
      beat = now
      if (silent >= MOST_SILENT_LOOKS) return { t: 'dead' }
    }
  }

  /** The counters as they are when the job ends: the worker writes them only now and then. */
  writeCounters() {
    const counters = Buffer.alloc(24)
    counters.writeBigUInt64LE(BigInt(this.numbers[TURNS] ?? 0), 0)
    counters.writeDoubleLE(this.numbers[DONE] ?? NaN, 8)
    counters.writeDoubleLE(this.numbers[TOTAL] ?? NaN, 16)
    try {
      const file = openSync(this.flagPath, 'r+')
      writeSync(file, counters, 0, counters.length, 8)
      closeSync(file)
    } catch {
      // the agent may be gone with its folder
    }
  }
}

/** Sends streams of bytes to the worker, slot by slot. */
export class Sender {
  /** @param {Link} link @param {number} id the save's number @param {(message: any) => void} onOther gets what is no free slot */
  constructor(link, id, onOther) {
    this.link = link
    this.id = id
    this.onOther = onOther
    this.stream = ''
    this.slot = -1
    this.filled = 0
  }

  /** @param {string} name */
  start(name) {
    this.flush()
    this.stream = name
  }

  /** @param {Uint8Array} bytes */
  write(bytes) {
    for (let at = 0; at < bytes.length;) {
      if (this.slot < 0) this.slot = this.takeSlot()
      const count = Math.min(SLOT_BYTES - this.filled, bytes.length - at)
      this.link.slots[this.slot]?.set(bytes.subarray(at, at + count), this.filled)
      this.filled += count
      at += count
      if (this.filled === SLOT_BYTES) this.flush()
    }
  }

  /** @param {number} count */
  zeros(count) {
    if (count > 0) this.write(new Uint8Array(count))
  }

  flush() {
    if (this.slot >= 0)
      this.link.post({ t: 'chunks', id: this.id, stream: this.stream, slot: this.slot, bytes: this.filled })
    this.slot = -1
    this.filled = 0
  }

  /** What was not sent yet never will be. */
  drop() {
    if (this.slot >= 0) this.link.free.push(this.slot)
    this.slot = -1
    this.filled = 0
  }

  takeSlot() {
    for (;;) {
      const slot = this.link.free.pop()
      if (slot !== undefined) return slot
      const message = this.link.receive()
      if (message.t === 'free') this.link.free.push(message.slot)
      else this.onOther(message)
    }
  }
}
