import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { AttemptOrder, AttemptReport } from '../contract/agent.ts'
import { second, type Duration } from '../core/time/index.ts'
import type { Around } from './around.ts'
import { Body, killEvery_ms } from './body.ts'
import { nowOf } from './clock.ts'
import { Conversation } from './conversation.ts'
import { deliver } from './deliver.ts'
import { undeclaredChanges } from './files.ts'
import type { KeeperFolder } from './keeper/index.ts'
import { Leasing } from './leasing.ts'
import { LogShipper, type Unheard } from './logs.ts'
import { Meter } from './measure.ts'
import type { AttemptSeen, AttemptState, Now, Step } from './model.ts'
import { saveState } from './record.ts'
import { reportOf } from './report.ts'
import { launch, provide } from './start.ts'
import { isOrderedAnew, nextStep, retryAfter, takeOrder } from './step.ts'

/** How often each attempt is looked at when nothing is seen. */
const lookEvery: Duration = second
const mostTold = 200

/**
 * One attempt on this machine: what is remembered of it, and everything that touches the world for it. What to do is
 * decided by `nextStep` alone; here it is done, one thing at a time.
 */
export class Attempt {
  readonly folder: string
  readonly work: string
  readonly lease: Leasing
  /** nothing of it is left here */
  isForgotten = false
  readonly log: Logger
  readonly #around: Around
  readonly #shipper: LogShipper
  readonly #meter = new Meter()
  readonly #conversation: Conversation
  #state: AttemptState
  readonly #body: Body
  #workReady: boolean
  #busy: Step['do'] | null = null
  #retryAt: Duration = 0
  #timer: NodeJS.Timeout | null = null
  #looping = false
  #closed = false

  constructor(around: Around, folder: string, state: AttemptState) {
    this.#around = around
    this.folder = folder
    this.work = join(folder, 'work')
    this.#state = state
    this.lease = new Leasing(around, folder)
    this.log = around.log.child({ attempt: state.attempt })
    this.#body = new Body(folder, state.attempt, around.clocks)
    this.#shipper = new LogShipper(join(folder, 'log'))
    this.#workReady = existsSync(join(folder, 'files.json'))
    this.#conversation = new Conversation(this, around)
  }

  get state(): AttemptState {
    return this.#state
  }

  get keeper(): KeeperFolder {
    return this.#body.keeper
  }

  get isBusy(): boolean {
    return this.#busy !== null
  }

  /** Something of it runs, or may. */
  get isAlive(): boolean {
    return this.#state.startedAt !== null && this.#state.exit === null
  }

  /** Takes up an attempt that an agent before left: its keeper, its conversation, its log. */
  async adopt(): Promise<void> {
    if (!this.isAlive) return
    const running = this.#body.isKept
    this.lease.takeUp()
    if (running) {
      this.#body.makeCgroups()
      // whether it stands still is not known: letting go what runs does no harm
      this.#body.frozen = this.#state.held === null
      this.#watchOver()
      await this.#conversation.open()
    }
    this.log.info({ running }, 'taken up again')
  }

  /** Takes on what it should be doing. Older orders than one taken on before are refused. */
  order(order: AttemptOrder): void {
    const taken = takeOrder(this.#state, order)
    if (taken === null) return this.log.info({ version: order.jobVersion }, 'an older order was refused')
    if (JSON.stringify(taken) !== JSON.stringify(this.#state)) {
      this.log.info({ want: order.want.do, version: order.jobVersion }, 'ordered')
      if (isOrderedAnew(taken)) this.#state = taken
      else this.#set(taken)
    }
    this.#conversation.reconsider()
    this.wake()
  }

  /** It is not current any more and never will be. */
  superseded(): void {
    if (this.#state.ending === null && this.#state.exit === null) this.change({ ending: 'superseded' })
    this.wake()
  }

  granted(nonce: string, length: Duration): void {
    const is = this.lease.granted(nonce, length)
    if (is === 'clears') this.#body.frozen = true
    this.wake()
  }

  acknowledged(upTo: number): void {
    this.#shipper.acknowledged(upTo)
    this.ship()
  }

  linked(): void {
    this.#shipper.connected()
    this.lease.askSoon()
    this.renew()
    this.ship()
  }

  noticed(): void {
    this.#conversation.reconsider()
    this.wake()
  }

  /** The machine slept, or its clock jumped: it stands still before anything else (J-LEASE-2), and goes on with a lease asked for since. */
  async jumped(ahead: Duration): Promise<void> {
    if (!this.isAlive) return
    if (this.lease.jumped(this.#state) && this.#state.held === null) await this.#body.freeze()
    this.tell('agent.slept', { ahead_ms: Math.round(ahead) })
    this.renew()
    this.wake()
  }

  /** Asks for a lease when that is due. */
  renew(): void {
    this.lease.renew(this.#state)
  }

  /** Sends what there is of its log. */
  ship(): void {
    if (this.isForgotten) return
    while (this.#around.ready()) {
      const piece = this.#shipper.next(this.#around.clocks.monotonic())
      if (!piece || !this.#around.send({ t: 'log', attempt: this.#state.attempt, ...piece })) return
    }
  }

  /** Once a second: everything that is not seen by an event. */
  tick(): void {
    if (this.isForgotten) return
    this.renew()
    this.ship()
    this.wake()
  }

  measure(): void {
    if (!this.isAlive) return
    const [used, at] = [this.#body.used(), this.#around.clocks.monotonic()]
    // what stands still is not idle: that time does not count
    this.#meter[this.#state.held ? 'pass' : 'look'](used, at)
  }

  /** Portal's own work begins or is over: it is not counted as the job's. */
  ours(on: boolean): void {
    this.#meter.ours(on, this.#body.used(), this.#around.clocks.monotonic())
  }

  report(): AttemptReport {
    const { clocks } = this.#around
    const { bytes, at } = this.#shipper.size()
    return reportOf(this.#state, this.#seen(), nowOf(clocks), {
      progress: this.#conversation.progress(),
      sample: this.#meter.sample(clocks.wall()),
      logBytes: bytes,
      outputAt: at,
    })
  }

  /** Remembers, durably, then tells. */
  change(change: Partial<AttemptState>): void {
    this.#set({ ...this.#state, ...change })
  }

  /** Puts down what it decided or saw alone; with whatever else is to be remembered at once. */
  tell(code: string, facts: Readonly<Record<string, string | number>>, change: Partial<AttemptState> = {}): void {
    const told = [...this.#state.told, { at: this.#around.clocks.wall(), code, facts }].slice(-mostTold)
    this.log.info(facts, code)
    this.change({ ...change, told })
  }

  /** Stands everything still; true once it does. */
  freeze(): Promise<boolean> {
    return this.#body.freeze()
  }

  thaw(): void {
    this.#body.thaw()
  }

  unheard(): Unheard {
    return this.#shipper.unheard()
  }

  /** Not tried again before this long. */
  rest(after: Duration = retryAfter): void {
    this.#retryAt = this.#now().boot + after
  }

  /** The agent ends; the job goes on. */
  close(): void {
    this.#closed = true
    if (this.#timer) clearTimeout(this.#timer)
    this.#body.close()
  }

  /** Does what is next, until there is nothing to do but to wait. */
  wake(): void {
    if (this.#looping || this.#closed || this.isForgotten) return
    this.#looping = true
    try {
      while (!this.#closed && !this.isForgotten) {
        const step = nextStep(this.#state, this.#seen(), this.#now())
        if (step.do === 'wait') return this.#sleepUntil(step.until)
        if (!this.#perform(step)) return this.#sleepUntil(this.#now().boot + killEvery_ms)
      }
    } catch (error) {
      this.log.error({ err: error }, 'a step failed')
      this.#sleepUntil(this.#now().boot + second)
    } finally {
      this.#looping = false
    }
  }

  /** True: look again at once. */
  #perform(step: Exclude<Step, { do: 'wait' }>): boolean {
    switch (step.do) {
      case 'change':
        if (step.change.exit) this.#during('change', () => this.#conclude(step.change))
        else this.#apply(step.change)
        return !step.change.exit
      case 'fetch':
      case 'start':
      case 'look':
      case 'probe':
      case 'save':
      case 'deliver':
        this.#during(step.do, () => this.#act(step))
        return true
      case 'let-run':
        this.#conversation.letRun()
        return true
      case 'thaw':
        this.thaw()
        this.#conversation.go()
        return true
      case 'ask-to-end':
        this.change({ stop: { saved: true, askedAt: this.#now().boot } })
        this.#conversation.go()
        this.#body.askToEnd()
        return true
      case 'kill':
        this.#body.kill()
        return false
      case 'forget':
        this.#forget()
        return false
    }
  }

  async #act(step: Extract<Step, { do: 'fetch' | 'start' | 'look' | 'probe' | 'save' | 'deliver' }>): Promise<void> {
    if (step.do === 'fetch' || step.do === 'start') this.#body.makeCgroups()
    switch (step.do) {
      case 'fetch':
        return await this.#fetch()
      case 'start':
        return await this.#start()
      case 'look':
        return await this.#conversation.look()
      case 'probe':
        return await this.#conversation.probe(step.move, step.wait)
      case 'save':
        return await this.#conversation.save(step.hold, step.wait)
      case 'deliver':
        if (await deliver(this, this.#around)) this.change({ delivered: true })
    }
  }

  #apply(change: Partial<AttemptState>): void {
    const { held } = this.#state
    this.change(change)
    if (held && this.#state.held === null) {
      this.#body.frozen = true
      const voided = change.voided?.at(-1)
      if (voided) this.tell('agent.voided', { move: voided })
      else if (held.move === null) this.tell('agent.ran_on', { because: held.because })
    }
    if (change.ending) this.log.info({ how: change.ending }, 'ending its processes')
  }

  /** One thing at a time; what goes wrong is said and tried again after a while. */
  #during(what: Step['do'], act: () => Promise<void>): void {
    this.#busy = what
    this.#around.changed()
    void (async () => {
      try {
        await act()
      } catch (error) {
        this.log.error({ err: error, what }, 'failed')
        await new Promise((resolve) => setTimeout(resolve, second))
      }
      this.#busy = null
      this.#around.changed()
      // not at once: what goes wrong without waiting must not keep everything else from its turn
      setImmediate(() => this.wake())
    })()
  }

  #seen(): AttemptSeen {
    const state = this.#state
    return {
      lease: this.lease.until,
      ...this.#body.see(state.startedAt !== null),
      workdir: this.#workReady ? 'ready' : 'absent',
      connected: this.#conversation.connected,
      restored: this.#conversation.restored,
      let: this.#conversation.isLet,
      asks: this.#conversation.asks,
      suspect: this.lease.isSuspect,
      notice: this.#around.notice(),
      busy: this.#busy,
      retryAt: this.#retryAt,
    }
  }

  #now(): Now {
    return nowOf(this.#around.clocks)
  }

  #set(state: AttemptState): void {
    // before anything was started a restart of the machine has nothing to go back on
    saveState(this.folder, state, state.startedAt !== null)
    this.#state = state
    this.#around.changed()
  }

  #sleepUntil(boot: Duration): void {
    if (this.#timer) clearTimeout(this.#timer)
    const delay = Math.min(Math.max(boot - this.#now().boot, 0), lookEvery)
    this.#timer = setTimeout(() => this.wake(), Math.ceil(delay) + 1)
    // the agent's own tick looks each second
    this.#timer.unref()
  }

  async #fetch(): Promise<void> {
    const why = await provide(this, this.#around)
    if (why !== null) return this.#cannotStart(why)
    this.#workReady = true
  }

  async #start(): Promise<void> {
    this.lease.keepDeadline()
    const manifest = await this.#conversation.open()
    if (manifest === 'failed') return
    const { want, from } = this.#state
    const wall = this.#around.clocks.wall()
    await launch({
      attempt: this,
      around: this.#around,
      manifest,
      place: this.#conversation.place,
      // on disk before the first process: after this the attempt may have run
      intend: () => {
        if (this.#state.exit || this.#state.ending) return false
        this.change({
          startedAt: { boot: this.#now().boot, wall },
          bootId: this.#around.bootId,
          ran: want.do === 'run' && from === null,
        })
        return true
      },
      cannot: (why) => this.#cannotStart(why),
      over: () => this.wake(),
    })
    this.#watchOver()
  }

  #cannotStart(error: string): void {
    const at = this.#around.clocks.wall()
    this.change({
      exit: { code: null, signal: null, at, how: 'could-not-start', error: error.slice(0, 4000) },
      delivered: true,
    })
    this.log.info({ error }, 'could not be started')
    this.#cleanUp()
  }

  #watchOver(): void {
    this.#body.watchOver((name) => {
      if (name === 'log') this.ship()
      else if (name === 'exit') this.wake()
    })
  }

  /** It has ended: what it leaves undeclared is looked for, then that it ended is remembered. */
  async #conclude(change: Partial<AttemptState>): Promise<void> {
    // a keeper of an agent before that comes up only now finds that it is too late
    this.#body.shut()
    const undeclared = await this.undeclared()
    if (!this.#body.isOver) return
    const { start } = this.#state
    const own = change.exit?.how === 'exited' || change.exit?.how === 'stopped'
    const nothing = !own || !start || start.outputs.length === 0
    this.change({ ...change, undeclared, ...(nothing ? { delivered: true } : {}) })
    this.log.info({ ...change.exit }, 'ended')
    this.ship()
    this.#cleanUp()
  }

  async undeclared(): Promise<readonly string[]> {
    const outputs = this.#state.start?.outputs ?? []
    return undeclaredChanges(this.work, join(this.folder, 'files.json'), outputs).catch(() => [])
  }

  #cleanUp(): void {
    this.#body.cleanUp()
    void this.#conversation.close()
  }

  #forget(): void {
    this.isForgotten = true
    this.#body.close()
    if (this.#timer) clearTimeout(this.#timer)
    this.#cleanUp()
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 })
    this.log.info('forgotten')
    this.#around.changed()
  }
}
