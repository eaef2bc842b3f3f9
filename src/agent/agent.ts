import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import {
  agentProtocol,
  type AttemptOrder,
  type AttemptReport,
  type Bootstrap,
  type ToAgent,
  type ToControl,
} from '../contract/agent.ts'
import { second, type Duration } from '../core/time/index.ts'
import type { Around } from './around.ts'
import { Attempt } from './attempt.ts'
import { Growing } from './growing.ts'
import { jumpWatch, nowOf } from './clock.ts'
import { Link } from './link.ts'
import type { NoticeSource } from './notice.ts'
import { loadState } from './record.ts'
import { newAttempt } from './step.ts'

/** What only counts (samples, progress, bytes) is told at most this often. */
const countsEvery: Duration = 3 * second
const measureEvery: Duration = 5 * second
/** Bytes handed over and not sent yet, from which on nothing that can wait is added. */
const enough = 4 * 1024 * 1024

export type AgentParts = Omit<Around, 'notice' | 'send' | 'ready' | 'changed'> & {
  readonly notices: NoticeSource
  readonly version: string
  /** the bootstrap as it is in its file now; null: it cannot be read */
  rereadBootstrap(): Bootstrap | null
  /** nothing is left to do: the agent ends, and with it a machine that was rented for it */
  done(why: string): void
}

/** One machine's side: many attempts on an owned machine, one on a rented one. */
export class Agent {
  readonly #parts: AgentParts
  readonly #around: Around
  readonly #growing: Growing
  readonly #link: Link
  #bootstrap: Bootstrap
  readonly #attempts = new Map<string, Attempt>()
  /** orders that could not be taken on yet */
  readonly #unmet = new Map<string, AttemptOrder>()
  readonly #jump: () => Duration
  readonly #timers: NodeJS.Timeout[] = []
  #watch: { close(): void } | null = null
  #notice: { readonly seenAt: number; readonly endsAt: number } | null = null
  #told = ''
  #toldCounts = ''
  #toldAt: Duration = -Infinity
  #soon: NodeJS.Immediate | null = null
  /** boot time when the control plane was heard last; the agent's start counts as that once */
  #heardAt: Duration

  constructor(parts: AgentParts) {
    this.#parts = parts
    this.#bootstrap = parts.bootstrap
    this.#link = new Link({
      // it may have moved while it could not be heard
      target: () => (this.#bootstrap = parts.rereadBootstrap() ?? this.#bootstrap),
      log: parts.log,
      opened: () => this.#opened(),
      closed: () => {
        this.#heardAt = nowOf(parts.clocks).boot
      },
      received: (message) => this.#received(message),
    })
    const bootstrap = (): Bootstrap => this.#bootstrap
    this.#around = {
      ...parts,
      get bootstrap() {
        return bootstrap()
      },
      notice: () => this.#notice,
      send: (message) => this.#link.send(message),
      ready: () => this.#link.isOpen && this.#link.waiting < enough,
      changed: () => {
        this.#soon ??= setImmediate(() => {
          this.#soon = null
          this.#report()
        })
      },
    }
    this.#growing = new Growing(this.#around)
    this.#jump = jumpWatch(parts.clocks)
    this.#heardAt = nowOf(parts.clocks).boot
  }

  /** Takes up what an agent before left, then connects. */
  async start(): Promise<void> {
    mkdirSync(this.#attemptsFolder(), { recursive: true, mode: 0o700 })
    this.#lookForNotice()
    for (const name of readdirSync(this.#attemptsFolder())) {
      const folder = join(this.#attemptsFolder(), name)
      try {
        const state = loadState(folder)
        if (!state) {
          // nothing of it was begun: if it is still wanted, it is ordered anew
          rmSync(folder, { recursive: true, force: true })
          continue
        }
        const attempt = new Attempt(this.#around, folder, state)
        this.#attempts.set(state.attempt, attempt)
        await attempt.adopt()
        attempt.wake()
      } catch (error) {
        this.#parts.log.error({ err: error, folder }, 'an attempt could not be taken up')
      }
    }
    this.#watch = this.#parts.notices.watch(() => this.#lookForNotice())
    this.#timers.push(
      setInterval(() => this.#tick(), second),
      setInterval(() => this.#measure(), measureEvery),
    )
    this.#link.open()
  }

  /** The agent ends; keepers and jobs go on. */
  close(): void {
    for (const timer of this.#timers) clearInterval(timer)
    if (this.#soon) clearImmediate(this.#soon)
    this.#watch?.close()
    this.#link.close()
    for (const attempt of this.#attempts.values()) attempt.close()
  }

  /** Runs each second by itself; also what a test calls when it has moved a clock. */
  look(): void {
    this.#tick()
  }

  #attemptsFolder(): string {
    return join(this.#parts.data, 'attempts')
  }

  #opened(): void {
    const { bootId, version } = this.#parts
    const { agentId } = this.#bootstrap
    this.#link.send({ t: 'hello', protocol: agentProtocol, agentId, bootId, version })
    this.#told = ''
    this.#report()
    for (const attempt of this.#attempts.values()) attempt.linked()
  }

  #received(message: ToAgent): void {
    this.#heardAt = nowOf(this.#parts.clocks).boot
    if (message.t === 'orders') {
      for (const order of message.attempts) this.#order(order)
      return
    }
    const attempt = this.#attempts.get(message.attempt)
    if (!attempt) return
    if (message.t === 'log-ack') attempt.acknowledged(message.upTo)
    else if (message.t === 'granted') attempt.granted(message.nonce, message.length)
    else attempt.superseded()
  }

  #order(order: AttemptOrder): void {
    this.#unmet.delete(order.attempt)
    try {
      let attempt = this.#attempts.get(order.attempt)
      if (!attempt) {
        // of what was forgotten, or never was, nothing is left to end
        if (order.want.do !== 'prepare' && order.want.do !== 'run') return
        const folder = join(this.#attemptsFolder(), order.attempt)
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        attempt = new Attempt(this.#around, folder, newAttempt(order, this.#parts.bootId))
        this.#attempts.set(order.attempt, attempt)
      }
      attempt.order(order)
      attempt.renew()
      if (attempt.isForgotten) this.#attempts.delete(order.attempt)
    } catch (error) {
      // a full disk, say: it is not said twice, so it is kept until it can be taken on
      this.#unmet.set(order.attempt, order)
      this.#parts.log.error({ err: error, attempt: order.attempt }, 'an order could not be taken on yet')
    }
  }

  #tick(): void {
    // those that still cannot be taken on come behind the others: this round takes each once
    const unmet = [...this.#unmet.values()]
    for (const order of unmet) this.#order(order)
    const ahead = this.#jump()
    if (ahead > 0) {
      this.#parts.log.warn({ ahead_ms: Math.round(ahead) }, 'the machine slept, or its clock jumped')
      for (const attempt of this.#attempts.values()) void attempt.jumped(ahead)
    }
    this.#lookForNotice()
    for (const [id, attempt] of this.#attempts) {
      attempt.tick()
      this.#growing.tick(attempt)
      if (attempt.isForgotten) this.#attempts.delete(id)
    }
    this.#report()
    this.#endAlone()
  }

  #measure(): void {
    for (const attempt of this.#attempts.values()) attempt.measure()
  }

  #lookForNotice(): void {
    const said = this.#parts.notices.read()
    if (said?.endsAt === this.#notice?.endsAt) return
    this.#notice = said && { seenAt: this.#parts.clocks.wall(), endsAt: said.endsAt }
    this.#parts.log.warn({ notice: this.#notice }, said ? 'the machine will be taken' : 'the notice was withdrawn')
    for (const attempt of this.#attempts.values()) attempt.noticed()
    this.#around.changed()
  }

  /** All that is known, when it says something new; what only counts, now and then. */
  #report(): void {
    if (!this.#link.isOpen) return
    const attempts = [...this.#attempts.values()].filter((one) => !one.isForgotten).map((one) => one.report())
    const machine = {
      cpus: availableParallelism(),
      memoryBytes: totalmem(),
      notice: this.#notice,
      confines: this.#parts.confinement.confines,
    }
    const message: ToControl = { t: 'report', machine, attempts }
    const counts = JSON.stringify(message)
    const said = JSON.stringify({ machine, attempts: attempts.map(withoutCounts) })
    const now = this.#parts.clocks.monotonic()
    if (said === this.#told && (counts === this.#toldCounts || now - this.#toldAt < countsEvery)) return
    this.#told = said
    this.#toldCounts = counts
    this.#toldAt = now
    this.#link.send(message)
  }

  /**
   * A machine that nobody can hear and that has nothing left to run ends by itself: at first after the check-in limit, later
   * when also the last lease that it was granted is over (J-LEASE-1).
   */
  #endAlone(): void {
    if (this.#link.isOpen) return
    const { boot } = nowOf(this.#parts.clocks)
    if (boot - this.#heardAt < this.#bootstrap.checkin) return
    for (const attempt of this.#attempts.values()) {
      // an owned machine keeps what it has to tell, for as long as it takes
      if (attempt.isAlive || attempt.state.start?.offer.market === 'owned') return
      if (attempt.lease.until !== null && boot < attempt.lease.until) return
    }
    this.#parts.done(
      `no word of the control plane for ${Math.round((boot - this.#heardAt) / 1000)} s, and nothing runs here`,
    )
  }
}

const withoutCounts = (report: AttemptReport): unknown => ({
  ...report,
  sample: null,
  progress: null,
  outputAt: null,
  logBytes: report.exit ? report.logBytes : 0,
})
