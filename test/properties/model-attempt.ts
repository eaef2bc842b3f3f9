import type { AttemptOrder, AttemptReport, ToControl } from '../../src/contract/agent.ts'
import { Lease } from '../../src/agent/lease.ts'
import type { AttemptSeen, AttemptState, Now, Step } from '../../src/agent/model.ts'
import { reportOf } from '../../src/agent/report.ts'
import { nextStep, takeOrder } from '../../src/agent/step.ts'
import {
  beginSave,
  DamageError,
  openStreams,
  readManifest,
  readRecord,
  type Chain,
  type CheckpointStore,
} from '../../src/checkpoints/index.ts'
import type { RefusedValue } from '../../src/core/jobs/model.ts'
import type { Chance } from './chance.ts'
import type { MachineClock } from './machine-clock.ts'
import { ModelProcess } from './model-process.ts'
import type { Truth } from './truth.ts'

export interface Around {
  readonly clock: MachineClock
  readonly chance: Chance
  readonly truth: Truth
  readonly store: CheckpointStore
  readonly goal: number
  readonly carriable: () => boolean
  /** counts what is under way, so that time does not pass over it */
  readonly busy: <T>(what: () => Promise<T>) => Promise<T>
  /** told when a save found that its slot belongs to somebody else */
  readonly fenced: (attempt: string) => Promise<void>
  /** waits without holding up time */
  readonly idle: (ms: number) => Promise<void>
  readonly notice: () => { readonly seenAt: number; readonly endsAt: number } | null
  readonly send: (message: ToControl) => boolean
  readonly changed: () => void
}

/** What is on the machine's disk, and what runs there: both outlive the agent's process. */
export interface Kept {
  state: AttemptState
  deadline: number | null
  ready: boolean
  process: ModelProcess | null
  /** the highest job version of all orders that came, whatever was made of them */
  highest: number
  /** how it was before it was held or saved last, and how far the work was */
  before: { readonly state: AttemptState; readonly progress: number } | null
}

const aSocket: RefusedValue = { path: 'state.sock', type: 'socket', reason: 'it is open', advice: 'close it' }
const second = 1000

/**
 * The agent's side of one attempt: the real agent's decisions (`src/agent/step.ts`, its lease and its report) over a modelled
 * process. What the real agent does between two decisions is done here the same way, and may be cut short anywhere by `crash`.
 */
export class ModelAttempt {
  readonly #around: Around
  readonly kept: Kept
  #lease = new Lease()
  #isLet = false
  #restored: AttemptSeen['restored'] = null
  #busy: Step['do'] | null = null
  #retryAt = 0
  /** when its machine's clock jumped, until a lease was asked for and granted since */
  #suspectSince: number | null = null
  #frozen = false
  #wanted = ''
  #crashed = false
  #forgotten = false
  #timer: { cancel(): void } | null = null
  #renewTimer: { cancel(): void } | null = null
  #looping = false

  constructor(around: Around, kept: Kept) {
    this.#around = around
    this.kept = kept
  }

  get id(): string {
    return this.kept.state.attempt
  }

  get isForgotten(): boolean {
    return this.#forgotten
  }

  get isAlive(): boolean {
    return this.kept.state.startedAt !== null && this.kept.state.exit === null
  }

  get leaseUntil(): number | null {
    return this.#lease.until
  }

  /** A new agent finds what one before left. */
  adopt(): void {
    const { state, deadline, process } = this.kept
    if (state.startedAt !== null && state.exit === null) {
      if (deadline !== null) this.#lease.found(deadline)
      this.#frozen = state.held === null
      if (process?.isThere) this.#sdkCame()
    }
    this.wake()
  }

  crash(): void {
    this.#crashed = true
    this.#timer?.cancel()
    this.#renewTimer?.cancel()
  }

  order(order: AttemptOrder): void {
    this.kept.highest = Math.max(this.kept.highest, order.jobVersion)
    const taken = takeOrder(this.kept.state, order)
    if (taken === null) return
    this.#set(taken)
    this.wake()
  }

  superseded(): void {
    const { ending, exit } = this.kept.state
    if (ending === null && exit === null) this.#change({ ending: 'superseded' })
    this.wake()
  }

  granted(nonce: string, length: number): void {
    if (this.#lease.granted(nonce, length)) {
      this.#keepDeadline()
      if (this.#suspectSince !== null && this.#lease.grantedFor >= this.#suspectSince) {
        this.#suspectSince = null
        this.#frozen = true
      }
    }
    this.renew()
    this.wake()
  }

  /** The machine slept: whatever runs stands still before anything else, and goes on with a lease that is asked for since. */
  slept(): void {
    if (!this.isAlive) return
    this.#lease.askSoon()
    this.#suspectSince = this.#around.clock.now()
    if (this.kept.state.held === null) this.kept.process?.freeze()
    this.renew()
    this.wake()
  }

  linked(): void {
    this.#lease.askSoon()
    this.renew()
    this.wake()
  }

  renew(): void {
    this.#renewTimer?.cancel()
    const { start, exit, ending, attempt } = this.kept.state
    if (!start || exit || ending || this.#crashed) return
    const { leaseLength, leaseRenew } = start.settings
    if (leaseLength === 'detached') return
    const now = this.#around.clock.now()
    const due = this.#lease.due(leaseRenew)
    if (now >= due && !this.#around.send({ t: 'renew', attempt, nonce: this.#lease.ask(now) })) this.#lease.askSoon()
    this.#renewTimer = this.#around.clock.after(Math.max(second, this.#lease.due(leaseRenew) - now), () => this.renew())
  }

  report(): AttemptReport {
    return reportOf(this.kept.state, this.#seen(), this.#now(), {
      progress: { turns: this.kept.process?.progress ?? 0, done: null, total: null },
      sample: null,
      logBytes: 0,
      outputAt: null,
    })
  }

  wake(): void {
    if (this.#looping || this.#crashed || this.#forgotten) return
    this.#looping = true
    try {
      for (let n = 0; ; n++) {
        if (n > 200) throw new Error(`attempt ${this.id} does not come to rest: ${JSON.stringify(this.kept.state)}`)
        if (this.#crashed || this.#forgotten) return
        const step = nextStep(this.kept.state, this.#seen(), this.#now())
        if (step.do === 'wait') return this.#sleepUntil(step.until)
        if (!this.#perform(step)) return this.#sleepUntil(this.#around.clock.now() + 50)
      }
    } finally {
      this.#looping = false
    }
  }

  #perform(step: Exclude<Step, { do: 'wait' }>): boolean {
    const { process, state, highest } = this.kept
    if (step.do !== 'change' && state.version < highest)
      this.#around.truth.wrong(`${this.id} acts (${step.do}) on an order older than one that it was given`)
    switch (step.do) {
      case 'change': {
        const { held } = this.kept.state
        this.#change({ ...step.change, ...(step.change.exit && { delivered: true }) })
        if (held && this.kept.state.held === null) this.#frozen = true
        return true
      }
      case 'fetch':
      case 'start':
      case 'look':
      case 'probe':
      case 'save':
      case 'deliver':
        this.#during(step)
        return true
      case 'let-run':
        this.#isLet = true
        process?.letPast()
        return true
      case 'thaw':
        this.#frozen = false
        process?.leaveSafePoint()
        process?.thaw()
        return true
      case 'ask-to-end':
        this.#change({ stop: { saved: true, askedAt: this.#around.clock.now() } })
        process?.leaveSafePoint()
        // some end at once, some take their time, some never listen
        if (this.#around.chance.happens(0.8))
          this.#around.clock.after(this.#around.chance.between(0, 5000), () =>
            process?.over({ is: 'signal', number: 15 }),
          )
        return true
      case 'kill':
        process?.over({ is: 'begun' })
        return false
      case 'forget':
        this.#forgotten = true
        this.crash()
        this.#around.changed()
        return false
    }
  }

  #during(step: Extract<Step, { do: 'fetch' | 'start' | 'look' | 'probe' | 'save' | 'deliver' }>): void {
    this.#busy = step.do
    this.#wanted = this.#whatIsWanted()
    this.#around.changed()
    // how long it takes before it has its effect
    this.#around.clock.after(
      this.#around.chance.between(0, step.do === 'save' || step.do === 'probe' ? 8000 : 500),
      () => {
        if (this.#crashed) return
        void this.#around.busy(async () => {
          try {
            await this.#act(step)
          } catch (error) {
            if (!(error instanceof Error && error.name === 'StoreError')) throw error
            this.#retryAt = this.#around.clock.now() + second
          }
          if (this.#crashed) return
          this.#busy = null
          this.#around.changed()
          this.wake()
        })
      },
    )
  }

  async #act(step: Extract<Step, { do: 'fetch' | 'start' | 'look' | 'probe' | 'save' | 'deliver' }>): Promise<void> {
    switch (step.do) {
      case 'fetch':
        this.kept.ready = true
        return
      case 'start':
        return await this.#start()
      case 'look':
        return await this.#look()
      case 'probe':
        if (this.#wanted !== this.#whatIsWanted()) return
        return this.#change({
          probe: { move: step.move, bytes: 8, refused: this.#around.carriable() ? [] : [aSocket], why: null },
        })
      case 'save':
        return await this.#save(step)
      case 'deliver':
        this.#change({ delivered: true })
    }
  }

  async #start(): Promise<void> {
    const { from, want, attempt, start } = this.kept.state
    if (!start) return
    this.#keepDeadline()
    let progress = 0
    if (from !== null)
      try {
        progress = await this.#read(from)
      } catch (error) {
        if (!(error instanceof DamageError)) throw error
        return this.#change({ restoreFailed: { slot: from, refused: [], why: error.message } })
      }
    if (this.#crashed) return
    const now = this.#around.clock.now()
    this.#change({ startedAt: { boot: now, wall: now }, ran: want.do === 'run' && from === null })
    this.kept.process = new ModelProcess({
      attempt,
      job: start.jobId,
      clock: this.#around.clock,
      truth: this.#around.truth,
      goal: this.#around.goal,
      restores: from !== null,
      deadline: this.#lease.until ?? Infinity,
      ended: () => this.tellAgent((agent) => agent.wake()),
    })
    const { process } = this.kept
    const { chance } = this.#around
    const takes = from !== null && chance.happens(0.2) ? chance.between(30, 115) : chance.between(0, 6)
    this.#around.clock.after(takes * second, () => {
      process.comes(progress)
      this.tellAgent((agent) => agent.#sdkCame())
    })
  }

  /** Overwritten by the machine: what a process tells goes to whichever agent is there. */
  tellAgent: (what: (agent: ModelAttempt) => void) => void = (what) => what(this)

  #sdkCame(): void {
    this.#restored = { is: this.kept.state.from === null ? 'nothing' : 'restored' }
    this.#change({ sdk: { language: 'python', version: 'model' } })
    this.wake()
  }

  async #read(slot: number): Promise<number> {
    const chain = this.#chain()
    const manifest = await readManifest(chain, slot)
    let text = ''
    for await (const piece of openStreams(chain, manifest)) text += Buffer.from(piece.bytes).toString()
    return Number(text)
  }

  async #look(): Promise<void> {
    const { saving, token } = this.kept.state
    if (!saving) return
    const record = await readRecord(this.#chain(), saving.slot)
    if (this.#crashed) return
    if (record?.is !== 'manifest' || record.token !== token) return this.#change({ saving: null })
    this.#change({
      saving: null,
      lastSlot: saving.slot,
      parent: saving.slot,
      saved: this.#savedAs(saving.slot, record),
    })
  }

  #savedAs(slot: number, { savedAt, bytes, storedBytes }: { savedAt: number; bytes: number; storedBytes: number }) {
    return { slot, at: savedAt, bytes, storedBytes, took: 0 }
  }

  async #save(step: Extract<Step, { do: 'save' }>): Promise<void> {
    const { process } = this.kept
    const { hold } = step
    const stopping = this.kept.state.want.do === 'stop'
    let held = false
    const refuse = (why: string, refused: readonly RefusedValue[]): void => {
      const at = this.#around.clock.now()
      this.#change({ saving: null, saveRefused: { move: hold?.move ?? null, refused, why, at } })
      this.#retryAt = at + 10 * second
    }
    try {
      if (!process || process.isOver) return refuse('the job ended before it reached a safe point', [])
      if (this.#wanted !== this.#whatIsWanted()) return
      process.reachSafePoint()
      if (!this.#around.carriable()) return refuse('one value cannot be carried', [aSocket])
      const slot = this.kept.state.lastSlot + 1
      this.#change({ saving: { slot, since: this.#around.clock.now() } })
      const saved = await this.#write(process, slot)
      if (this.#crashed) return
      if (saved.is === 'fenced') {
        if (saved.by.is === 'manifest' && saved.by.token === this.kept.state.token) return await this.#look()
        await this.#around.fenced(this.id)
        return this.#change({ saving: null, ending: 'superseded' })
      }
      this.#change({
        saving: null,
        saveRefused: null,
        lastSlot: slot,
        parent: slot,
        saved: this.#savedAs(slot, { savedAt: this.#around.clock.now(), ...saved }),
      })
      const { want, voided } = this.kept.state
      const ordered = want.do === 'hold' && want.move === hold?.move && !voided.includes(want.move)
      if (!hold || (hold.because === 'order' && !ordered)) return
      process.freeze()
      if (process.isOver) return refuse('the job was saved, but could not be held', [])
      const until = hold.holdFor === null ? null : this.#around.clock.now() + hold.holdFor
      held = true
      this.#change({ held: { move: hold.move, slot, logOffset: 0, because: hold.because, until } })
    } finally {
      // an agent that is gone does nothing any more: its job waits at the safe point until another one lets it go
      if (!this.#crashed) {
        if (stopping && !this.kept.state.stop && !this.kept.state.exit)
          this.#change({ stop: { saved: true, askedAt: null } })
        if (!held && !stopping) process?.leaveSafePoint()
      }
    }
  }

  async #write(process: ModelProcess, slot: number) {
    const { state } = this.kept
    const progress = process.progress
    const writer = await beginSave({ ...this.#chain(), token: state.token, slot, parent: state.parent })
    if (writer.is !== 'open') return writer
    const stream = writer.stream('graph')
    await stream.write(Buffer.from(String(progress)))
    await stream.end()
    // all is read; how long until it is durable, and the slot taken, is the store's matter, whatever becomes of the process
    const { chance } = this.#around
    if (chance.happens(0.2)) await this.#around.idle(chance.between(5, 900) * second)
    if (this.#crashed) throw Object.assign(new Error('the agent is gone'), { name: 'StoreError' })
    const outcome = await writer.commit({
      method: 'sdk',
      savedAt: this.#around.clock.now(),
      values: [],
      environment: null,
      digest: null,
      meta: null,
      notes: null,
    })
    if (outcome.is === 'committed')
      this.#around.truth.saved.set(`${state.start?.jobId}/${slot}`, { attempt: this.id, progress })
    return outcome
  }

  #seen(): AttemptSeen {
    const { state, process, ready } = this.kept
    const over = process === null || process.isOver
    return {
      lease: this.#lease.until,
      keeper: state.startedAt && !over ? 'running' : 'over',
      kept: process === null ? { is: 'new' } : (process.end ?? { is: 'begun' }),
      keptAt: null,
      frozen: this.#frozen,
      workdir: ready ? 'ready' : 'absent',
      connected: !over && this.#restored !== null,
      restored: this.#restored,
      let: this.#isLet,
      asks: false,
      suspect: this.#suspectSince !== null,
      notice: this.#around.notice(),
      busy: this.#busy,
      retryAt: this.#retryAt,
    }
  }

  #whatIsWanted(): string {
    const { want } = this.kept.state
    const notice = this.#around.notice()?.endsAt ?? 0
    return want.do === 'hold' ? `hold ${want.move}` : `${want.do} ${want.do === 'probe' ? want.move : ''} ${notice}`
  }

  #keepDeadline(): void {
    const { until } = this.#lease
    if (until === null) return
    this.kept.deadline = until
    this.kept.process?.deadline(until)
  }

  #chain(): Chain {
    const { start } = this.kept.state
    if (!start) throw new Error(`attempt ${this.id} was never told of its job`)
    return { store: this.#around.store, jobId: start.jobId, key: Buffer.from(start.key, 'base64') }
  }

  #now(): Now {
    const now = this.#around.clock.now()
    return { boot: now, wall: now }
  }

  #change(change: Partial<AttemptState>): void {
    this.#set({ ...this.kept.state, ...change })
  }

  #set(state: AttemptState): void {
    if (this.#crashed) return
    const { exit, held, ran, saving, ending } = this.kept.state
    if (ran && !exit && !held && !saving && !ending)
      this.kept.before = { state: this.kept.state, progress: this.kept.process?.progress ?? 0 }
    this.kept.state = state
    this.#around.changed()
  }

  #sleepUntil(at: number): void {
    this.#timer?.cancel()
    if (at === Infinity) return
    this.#timer = this.#around.clock.after(Math.max(1, at - this.#around.clock.now()), () => this.wake())
  }
}
