import { beginSave, readManifest, openStreams, type CheckpointStore } from '../../src/checkpoints/index.ts'
import type {
  AttemptExit,
  AttemptOrder,
  AttemptReport,
  JobStart,
  ToAgent,
  ToControl,
} from '../../src/contract/agent.ts'
import type { VirtualClock } from './clock.ts'

/** What the modelled world tells the checker, in true time: never what an agent reports of itself. */
export interface Truth {
  began(attempt: string, progress: number): void
  ended(attempt: string): void
}

export interface ModelJob {
  /** at which progress the job ends by itself */
  readonly goal: number
  /** whether a checkpoint can carry its state now */
  carriable: boolean
}

interface Durable {
  version: number
  phase: AttemptReport['phase']
  lastSlot: number
  start: JobStart | null
  held: AttemptReport['held']
  promised: string | null
  voided: string[]
  exit: AttemptExit | null
  saved: AttemptReport['saved']
  probe: AttemptReport['probe']
  saveRefused: AttemptReport['saveRefused']
  restoreFailed: AttemptReport['restoreFailed']
}

export interface ModelMachineOptions {
  readonly attempt: string
  readonly token: number
  readonly clock: VirtualClock
  readonly store: CheckpointStore
  readonly truth: Truth
  readonly job: ModelJob
  /** counts what is under way, so that time does not pass over it */
  readonly busy: <T>(what: () => Promise<T>) => Promise<T>
  readonly connect: (machine: ModelMachine) => { send(message: ToControl): void; close(): void } | null
}

const second = 1000

/**
 * A machine with its agent and a modelled job on it: a number that grows by one a second while it executes. The agent keeps
 * the rules of an agent (refuse lower versions; save, hold, promise, void; end at the deadline) and nothing else.
 */
export class ModelMachine {
  readonly #o: ModelMachineOptions
  readonly #d: Durable = {
    version: 0,
    phase: 'new',
    lastSlot: 0,
    start: null,
    held: null,
    promised: null,
    voided: [],
    exit: null,
    saved: null,
    probe: null,
    saveRefused: null,
    restoreFailed: null,
  }
  #progress = 0
  #executing = false
  #alive = true
  #link: { send(message: ToControl): void; close(): void } | null = null
  #notice: { seenAt: number; endsAt: number } | null = null
  #deadline: number
  #saving = false
  #holdTimer: { cancel(): void } | null = null

  constructor(options: ModelMachineOptions) {
    this.#o = options
    this.#deadline = options.clock.now() + 15 * 60 * second
    options.clock.after(second, () => this.#connect())
    this.#tick()
  }

  get alive(): boolean {
    return this.#alive
  }

  get executing(): boolean {
    return this.#executing
  }

  /** The machine is gone, with all that runs on it. */
  die(): void {
    if (!this.#alive) return
    this.#alive = false
    this.#setExecuting(false)
    this.disconnect()
  }

  disconnect(): void {
    this.#link?.close()
    this.#link = null
  }

  notice(length: number): void {
    if (!this.#alive) return
    const now = this.#o.clock.now()
    this.#notice = { seenAt: now, endsAt: now + length }
    this.#report()
    // it begins to save by itself, whoever can be reached (J-SPOT-1)
    if (this.#d.phase === 'running') void this.#hold(null, 'notice')
  }

  received(message: ToAgent): void {
    if (!this.#alive) return
    if (message.t === 'granted' && this.#renewals.has(message.nonce)) {
      this.#deadline = Math.max(this.#deadline, (this.#renewals.get(message.nonce) as number) + message.length)
      this.#renewals.clear()
    }
    if (message.t === 'superseded') this.#end('superseded')
    if (message.t === 'orders') for (const order of message.attempts) this.#order(order)
  }

  readonly #renewals = new Map<string, number>()

  #connect(): void {
    if (!this.#alive) return
    if (!this.#link) {
      this.#link = this.#o.connect(this)
      if (this.#link) {
        this.#link.send({ t: 'hello', protocol: 1, agentId: this.#o.attempt, bootId: 'boot', version: 'model' })
        this.#report()
        this.#renew()
      }
    }
    this.#o.clock.after(2 * second, () => this.#connect())
  }

  #lastAsked = 0
  #renew(): void {
    const now = this.#o.clock.now()
    if (!this.#link || this.#d.exit || (now - this.#lastAsked < 10 * 60 * second && this.#lastAsked > 0)) return
    this.#lastAsked = now
    const nonce = `n${now}`
    this.#renewals.set(nonce, now)
    this.#link.send({ t: 'renew', attempt: this.#o.attempt, nonce })
  }

  #tick(): void {
    this.#o.clock.after(second, () => {
      if (!this.#alive) return
      this.#tick()
      if (this.#o.clock.now() >= this.#deadline) return this.#end('deadline')
      this.#renew()
      if (!this.#executing) return
      this.#progress += 1
      if (this.#progress >= this.#o.job.goal)
        this.#exit({ code: 0, signal: null, at: this.#o.clock.now(), how: 'exited', error: null })
    })
  }

  #order(order: AttemptOrder): void {
    const d = this.#d
    if (order.attempt !== this.#o.attempt || order.jobVersion < d.version) return
    d.version = order.jobVersion
    const { want } = order
    if (d.exit && want.do !== 'end') return this.#report()
    switch (want.do) {
      case 'prepare':
        if (d.phase === 'new') void this.#prepare(want.start, want.slot)
        break
      case 'run':
        void this.#run(want.start, want.slot, want.aborted, want.lastSlot)
        break
      case 'probe':
        if (d.probe?.move !== want.move && d.phase === 'running') {
          const refused = this.#o.job.carriable
            ? []
            : [{ path: 'state.sock', type: 'socket', reason: 'open', advice: 'close it' }]
          d.probe = { move: want.move, bytes: 8, refused, why: null }
        }
        break
      case 'hold':
        if (d.voided.includes(want.move)) break
        if (d.held && (d.phase === 'held' || d.phase === 'promised')) {
          d.held = { ...d.held, move: want.move }
          this.#armHold(want.move, want.holdFor)
        } else if (d.phase === 'running') void this.#hold(want.move, 'order', want.holdFor)
        break
      case 'promise':
        if (d.phase === 'held' && d.held?.move === want.move && !d.voided.includes(want.move)) {
          d.promised = want.move
          d.phase = 'promised'
          this.#holdTimer?.cancel()
        }
        break
      case 'kill-held':
        if (d.phase === 'held' || d.phase === 'promised')
          this.#exit({ code: null, signal: 'KILL', at: this.#o.clock.now(), how: 'killed-held', error: null })
        else this.#exit({ code: null, signal: 'KILL', at: this.#o.clock.now(), how: 'ended', error: null })
        break
      case 'stop':
        void this.#stop(want.save)
        break
      case 'end':
        this.#end('ended')
        break
    }
    this.#report()
  }

  async #prepare(start: JobStart, slot: number): Promise<void> {
    const d = this.#d
    d.phase = 'preparing'
    d.start = start
    d.lastSlot = start.lastSlot
    try {
      this.#progress = await this.#o.busy(() => this.#restore(start, slot))
      if (d.phase === 'preparing') d.phase = 'prepared'
    } catch (error) {
      d.restoreFailed = { slot, refused: [], why: String(error) }
    }
    this.#report()
  }

  async #restore(start: JobStart, slot: number): Promise<number> {
    const chain = { store: this.#o.store, jobId: start.jobId, key: Buffer.from(start.key, 'base64') }
    const manifest = await readManifest(chain, slot)
    let text = ''
    for await (const piece of openStreams(chain, manifest)) text += Buffer.from(piece.bytes).toString()
    return Number(text)
  }

  async #run(start: JobStart, slot: number | null, aborted: string | null, lastSlot: number): Promise<void> {
    const d = this.#d
    if (d.phase === 'new') {
      d.start = start
      d.lastSlot = lastSlot
      if (slot !== null) {
        await this.#prepare(start, slot)
        if ((d.phase as string) !== 'prepared') return
      }
      d.phase = 'running'
      this.#setExecuting(true)
    } else if (d.phase === 'prepared') {
      d.lastSlot = Math.max(d.lastSlot, lastSlot)
      d.phase = 'running'
      this.#setExecuting(true)
    } else if (
      (d.phase === 'held' || d.phase === 'promised') &&
      aborted !== null &&
      (d.held?.move === aborted || d.promised === aborted)
    ) {
      d.lastSlot = Math.max(d.lastSlot, lastSlot)
      this.#runOn()
    }
    this.#report()
  }

  #runOn(): void {
    this.#holdTimer?.cancel()
    this.#d.phase = 'running'
    this.#d.held = null
    this.#d.promised = null
    this.#setExecuting(true)
  }

  async #hold(move: string | null, because: 'order' | 'notice', holdFor = 600 * second): Promise<void> {
    if (this.#saving) return
    this.#saving = true
    const d = this.#d
    d.phase = 'saving'
    this.#report()
    const done = await this.#save()
    this.#saving = false
    if (!this.#alive || d.exit) return
    if (done !== 'saved') {
      d.phase = 'running'
      if (done === 'refused')
        d.saveRefused = {
          move,
          refused: [{ path: 'state.sock', type: 'socket', reason: 'open', advice: 'close it' }],
          why: 'refused',
          at: this.#o.clock.now(),
        }
      else return this.#end('superseded')
    } else {
      d.phase = 'held'
      d.held = { move, slot: d.lastSlot, logOffset: 0, because }
      this.#setExecuting(false)
      if (move !== null) this.#armHold(move, holdFor)
    }
    this.#report()
  }

  /** Until its promise a source runs on alone when nobody told it what became of the move; it voids the move first. */
  #armHold(move: string, holdFor: number): void {
    this.#holdTimer?.cancel()
    this.#holdTimer = this.#o.clock.after(holdFor, () => {
      if (!this.#alive || this.#d.phase !== 'held' || this.#d.held?.move !== move) return
      this.#d.voided.push(move)
      this.#runOn()
      this.#report()
    })
  }

  async #save(): Promise<'saved' | 'refused' | 'fenced'> {
    if (!this.#o.job.carriable) return 'refused'
    const d = this.#d
    const start = d.start as JobStart
    const progress = this.#progress
    const outcome = await this.#o.busy(async () => {
      const writer = await beginSave({
        store: this.#o.store,
        jobId: start.jobId,
        key: Buffer.from(start.key, 'base64'),
        token: this.#o.token,
        slot: d.lastSlot + 1,
        parent: null,
      })
      if (writer.is !== 'open') return writer
      const stream = writer.stream('graph')
      await stream.write(Buffer.from(String(progress)))
      await stream.end()
      return writer.commit({
        method: 'sdk',
        savedAt: this.#o.clock.now(),
        values: [],
        environment: null,
        digest: null,
        meta: null,
        notes: null,
      })
    })
    if (outcome.is !== 'committed') return 'fenced'
    d.lastSlot = outcome.slot
    d.saved = {
      slot: outcome.slot,
      at: this.#o.clock.now(),
      bytes: outcome.bytes,
      storedBytes: outcome.storedBytes,
      took: 0,
    }
    // what it did while the save was written is undone by nothing: at a safe point it does nothing meanwhile
    this.#progress = progress
    return 'saved'
  }

  async #stop(save: boolean): Promise<void> {
    const d = this.#d
    if (d.phase === 'stopping') return
    const was = d.phase
    d.phase = 'stopping'
    if (save && was === 'running') await this.#save()
    if (!d.exit) this.#exit({ code: null, signal: 'TERM', at: this.#o.clock.now(), how: 'stopped', error: null })
  }

  #end(how: 'deadline' | 'superseded' | 'ended'): void {
    if (this.#d.exit) return
    this.#exit({ code: null, signal: 'KILL', at: this.#o.clock.now(), how, error: null })
  }

  #exit(exit: AttemptExit): void {
    this.#holdTimer?.cancel()
    this.#setExecuting(false)
    this.#d.exit = exit
    this.#d.phase = 'ended'
    this.#report()
  }

  #setExecuting(on: boolean): void {
    if (this.#executing === on) return
    this.#executing = on
    if (on) this.#o.truth.began(this.#o.attempt, this.#progress)
    else this.#o.truth.ended(this.#o.attempt)
  }

  #report(): void {
    const d = this.#d
    this.#link?.send({
      t: 'report',
      machine: { cpus: 2, memoryBytes: 4e9, notice: this.#notice, confines: 'namespace' },
      attempts: [
        {
          attempt: this.#o.attempt,
          token: this.#o.token,
          version: d.version,
          phase: d.phase,
          method: 'sdk',
          sdk: { language: 'python', version: 'model' },
          exit: d.exit,
          probe: d.probe,
          held: d.held,
          promised: d.promised,
          voided: [...d.voided],
          saveRefused: d.saveRefused,
          restoreFailed: d.restoreFailed,
          saved: d.saved,
          progress: { turns: this.#progress, done: null, total: null },
          sample: null,
          logBytes: 0,
          outputAt: null,
          undeclared: [],
          told: [],
        },
      ],
    })
  }
}
