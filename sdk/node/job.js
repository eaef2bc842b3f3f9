// @ts-check
/** `job`: what a script says to Portal. Outside Portal everything here does nothing, and the script runs as it is. */
import { createRequire } from 'node:module'
import { isMainThread } from 'node:worker_threads'
import { environment, VERSION } from './environment.js'
import { Classes } from './graph/classes.js'
import { Origins } from './graph/origins.js'
import { Walk } from './graph/walk.js'
import { Link } from './link.js'
import { SeededRandom } from './random.js'
import { atSafePoint } from './safe-point.js'
import { begin } from './start.js'
import { Steps } from './steps.js'

const { CONTROL_BYTES, DONE, TOTAL, TURNS, WANTED } = /** @type {typeof import('./shared.cjs')} */ (
  createRequire(import.meta.url)('./shared.cjs')
)

/** The first process that loads the SDK is the job; what it starts inherits its environment, and is not. */
const JOB_PID = 'PORTAL_JOB_PID'
if (process.env.PORTAL_SOCKET && isMainThread) process.env[JOB_PID] ??= String(process.pid)

export class Job {
  constructor() {
    const control = new SharedArrayBuffer(CONTROL_BYTES)
    this.control = control
    /** @private */ this.flags = new Uint8Array(control)
    /** both flags, the agent's and the job's own, in one look */
    this.asked = new Uint16Array(control)
    this.numbers = new Float64Array(control)
    this.numbers[DONE] = NaN
    this.numbers[TOTAL] = NaN
    this.registry = new Classes()
    this.registry.register('portal.Random', SeededRandom)
    /** @type {import('./talk.js').Talk | null} */
    this.talk = null
    this.called = false
    this.running = false
    /** loops over `steps` that are under way */
    this.loops = 0
    /** @type {(() => unknown)[]} */
    this.starters = []
    /** @type {(() => unknown)[]} */
    this.suspenders = []
    this.wasRestored = false
    /** ms that the job has run in attempts before this one */
    this.carried = 0
    this.since = 0
    /** since when the job stands at a safe point; 0: it runs */
    this.stoppedAt = 0
    this.attemptNumber = Number(process.env.PORTAL_ATTEMPT ?? 0) || 0
  }

  /** The number of this attempt; 0 outside Portal. */
  get attempt() {
    return this.attemptNumber
  }

  /** Whether this attempt began from a checkpoint; known after `job.state()`. */
  get restored() {
    return this.wasRestored
  }

  /** @template {object} S @param {S} initial @returns {Promise<S>} */
  async state(initial) {
    const prototype = typeof initial === 'object' && initial !== null ? Object.getPrototypeOf(initial) : undefined
    if (prototype !== Object.prototype && prototype !== null)
      throw new TypeError(
        'job.state takes a plain object of the values that make up the state: job.state({ step: 0, model })',
      )
    if (this.called)
      throw new Error('job.state was called a second time: a job has one state; put everything into the first call')
    this.called = true
    const socketPath = process.env.PORTAL_SOCKET
    const flagPath = process.env.PORTAL_FLAG
    if (socketPath && flagPath && isMainThread && process.env[JOB_PID] === String(process.pid)) {
      delete process.env.PORTAL_SOCKET
      delete process.env.PORTAL_FLAG
      this.connect(initial, socketPath, flagPath)
    }
    this.running = true
    this.since = performance.now()
    for (const start of this.starters.splice(0)) await start()
    return initial
  }

  /** @private @param {object} root @param {string} socketPath @param {string} flagPath */
  connect(root, socketPath, flagPath) {
    const origins = new Origins()
    new Walk(this.registry, origins, { discover: true }).run(root, () => {})
    const hello = {
      t: 'hello',
      protocol: 1,
      sdk: 'node',
      version: VERSION,
      pid: process.pid,
      environment: environment(),
    }
    this.talk = {
      link: new Link({ socketPath, flagPath, hello }, this.control),
      root,
      classes: this.registry,
      origins,
      clock: { carried: () => this.clock(), setCarried: (ms) => void (this.carried = ms) },
      suspend: () => this.suspend(),
      hasSuspend: () => this.suspenders.length > 0,
    }
    this.wasRestored = begin(this.talk)
  }

  /** @param {object} state @param {string} key @param {number} end */
  steps(state, key, end) {
    return new Steps(this, state, key, end)
  }

  /** @param {object} state @param {string} key @param {number} end */
  async *stepsAsync(state, key, end) {
    for (const step of new Steps(this, state, key, end)) yield step
  }

  checkpoint() {
    // asked for by what runs before a save, it would never end
    if (!this.talk || this.stoppedAt !== 0) return
    this.flags[WANTED] = 1
    if (this.loops === 0) this.safePoint()
  }

  /** @param {number} done @param {number} [total] */
  progress(done, total = NaN) {
    this.numbers[DONE] = Number(done)
    this.numbers[TOTAL] = Number(total)
  }

  /** @param {() => void | (() => void)} fn */
  onSuspend(fn) {
    mustBeFunction('onSuspend', fn)
    this.suspenders.push(fn)
  }

  /** @param {() => unknown} fn */
  onStart(fn) {
    mustBeFunction('onStart', fn)
    if (this.running) return fn()
    this.starters.push(fn)
    return undefined
  }

  clock() {
    return this.running ? this.carried + ((this.stoppedAt || performance.now()) - this.since) : this.carried
  }

  /** @param {...(Function | Record<string, Function | symbol>)} classes */
  classes(...classes) {
    if (this.called)
      throw new Error('job.classes comes before job.state(): a restore must know the classes while it is under way')
    for (const each of classes)
      if (typeof each === 'function') this.registry.register(each.name, each)
      else for (const [name, value] of Object.entries(each)) this.registry.register(name, value)
  }

  /** @param {number | string} [seed] */
  random(seed) {
    return new SeededRandom(seed)
  }

  /** Looks whether something is asked, and does it. */
  safePoint() {
    this.numbers[TURNS] = (this.numbers[TURNS] ?? 0) + 1
    if (this.asked[0] !== 0) this.stop()
  }

  /** At a safe point at which something is asked. */
  stop() {
    const asks = this.flags[WANTED] === 1 ? 'checkpoint' : null
    this.flags[WANTED] = 0
    // a safe point within what runs at a safe point is none
    if (!this.talk || this.stoppedAt !== 0) return
    // what the job stands still for is no time that it runs
    this.stoppedAt = performance.now()
    try {
      if (!atSafePoint(this.talk, this.numbers[TURNS] ?? 0, asks)) this.giveUp()
    } finally {
      this.since += performance.now() - this.stoppedAt
      this.stoppedAt = 0
    }
  }

  /** The thread that speaks with the agent is no more: the job runs on to its end, and nothing can be asked of it. */
  giveUp() {
    this.talk = null
    this.asked[0] = 0
    process.stderr.write(
      'portal: the thread that speaks with the agent is gone; the job runs on and cannot be saved any more\n',
    )
  }

  /** Runs what the job wants done before a save; the answer undoes it. @private @returns {() => void} */
  suspend() {
    /** @type {(() => void)[]} */
    const undo = []
    for (const each of this.suspenders) {
      const back = each()
      if (back instanceof Promise)
        throw new TypeError('job.onSuspend: the function returned a promise; a safe point cannot wait for it')
      if (typeof back === 'function') undo.unshift(/** @type {() => void} */ (back))
    }
    return () => {
      for (const back of undo) back()
    }
  }
}

/** @param {string} name @param {unknown} fn */
const mustBeFunction = (name, fn) => {
  if (typeof fn !== 'function') throw new TypeError(`job.${name} takes a function`)
}
