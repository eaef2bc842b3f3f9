import { newAttempt } from '../../src/agent/step.ts'
import type { ToAgent, ToControl } from '../../src/contract/agent.ts'
import type { VirtualClock } from './clock.ts'
import { MachineClock } from './machine-clock.ts'
import { ModelAttempt, type Around, type Kept } from './model-attempt.ts'

export interface Wire {
  send(message: ToControl): void
  close(): void
}

type Parts = Omit<Around, 'notice' | 'send' | 'changed' | 'clock' | 'idle'> & {
  readonly world: VirtualClock
  /** not busy for so long, by this machine's clock */
  readonly idle: (clock: MachineClock, ms: number) => Promise<void>
  readonly agentId: string
  /** a person's own: it is never ended, and serves many attempts */
  readonly owned: boolean
  /** an agent that cannot find home, and has nothing to do, ends its machine after this long */
  readonly checkin: number
  /** null: nobody can be reached */
  readonly connect: (received: (message: ToAgent) => void, closed: () => void) => Wire | null
}

const second = 1000

/** The agent's process: what it keeps in memory is gone with it. */
interface Agent {
  readonly attempts: Map<string, ModelAttempt>
  wire: Wire | null
  told: string
  reporting: boolean
  heardAt: number
}

/** A machine: its disk, its processes, and an agent that may crash and come back. */
export class ModelMachine {
  readonly #parts: Parts
  readonly #clock: MachineClock
  readonly #disk = new Map<string, Kept>()
  /** what an old image of the machine would bring back */
  readonly #images = new Map<string, Kept>()
  #agent: Agent | null = null
  #alive = true
  #cutOffUntil = 0
  #notice: { seenAt: number; endsAt: number } | null = null

  constructor(parts: Parts) {
    this.#parts = parts
    this.#clock = new MachineClock(parts.world)
    this.#startAgent()
  }

  get agentId(): string {
    return this.#parts.agentId
  }

  get owned(): boolean {
    return this.#parts.owned
  }

  get alive(): boolean {
    return this.#alive
  }

  /** The machine is gone, with everything on it. */
  die(): void {
    if (!this.#alive) return
    this.crashAgent(Infinity)
    this.#alive = false
    for (const { process } of this.#disk.values()) process?.over({ is: 'begun' })
    this.#clock.pause()
  }

  /** The whole machine stands still, and nobody on it knows. */
  pause(duration: number): void {
    if (!this.#alive || this.#clock.isPaused) return
    for (const [id, { process }] of this.#disk) {
      process?.pause(true)
      if (!this.#parts.owned) this.#parts.truth.paused.add(id)
    }
    this.#clock.pause()
    const agent = this.#agent
    // whoever is connected to it gives up after a while
    this.#parts.world.after(Math.min(duration, 20 * second), () => agent?.wire?.close())
    this.#parts.world.after(duration, () => {
      if (!this.#alive) return
      this.#clock.goOn(this.#parts.owned)
      for (const { process } of this.#disk.values()) process?.pause(false)
      // the agent notices at its next look, within a second
      if (duration > 2 * second)
        this.#clock.after(this.#parts.chance.between(0, second), () => {
          for (const attempt of this.#agent?.attempts.values() ?? []) attempt.slept()
        })
    })
  }

  /**
   * The machine is set back to how it was at some time before: as if from an old image, with processes that ran then and have
   * ended since. Nothing of that may count any more, but where it goes on being the current one.
   */
  setBack(): void {
    if (!this.#alive || this.#clock.isPaused) return
    this.crashAgent(second)
    for (const [id, kept] of [...this.#images, ...this.#disk]) {
      if (!kept.before || !kept.process) continue
      this.#parts.truth.haunted.add(id)
      const ended = kept.process.isOver
      kept.state = kept.before.state
      kept.highest = kept.state.version
      this.#disk.set(id, kept)
      kept.process.setBack(kept.before.progress)
      if (!ended) continue
      // the lease that it held then runs on from now
      this.#parts.truth.revived.add(id)
      kept.deadline = this.#clock.now() + this.#parts.chance.between(60, 600) * second
      kept.process.deadline(kept.deadline)
    }
  }

  /** The agent's process is killed; its jobs and their keepers go on. */
  crashAgent(backAfter: number): void {
    const agent = this.#agent
    if (!agent) return
    this.#agent = null
    for (const attempt of agent.attempts.values()) attempt.crash()
    agent.wire?.close()
    this.#clock.after(backAfter, () => this.#alive && !this.#agent && this.#startAgent())
  }

  cutConnection(): void {
    this.#agent?.wire?.close()
  }

  /** Nobody hears it, and it hears nobody, for so long. */
  cutOff(duration: number): void {
    this.#cutOffUntil = this.#parts.world.now() + duration
    this.cutConnection()
  }

  /** The job's process is killed by somebody else. */
  killProcesses(): void {
    for (const { process } of this.#disk.values()) process?.over({ is: 'signal', number: 9 })
  }

  noticed(length: number): void {
    const now = this.#clock.now()
    if (!this.#alive || this.#parts.owned) return
    this.#notice = { seenAt: now, endsAt: now + length }
    this.#changed()
    for (const attempt of this.#agent?.attempts.values() ?? []) attempt.wake()
  }

  get isNoticed(): boolean {
    return this.#notice !== null
  }

  withdrawNotice(): void {
    this.#notice = null
    this.#changed()
    for (const attempt of this.#agent?.attempts.values() ?? []) attempt.wake()
  }

  received(message: ToAgent): void {
    const agent = this.#agent
    if (!agent || this.#clock.isPaused) return
    agent.heardAt = this.#clock.now()
    if (message.t === 'orders') {
      for (const order of message.attempts) {
        let attempt = agent.attempts.get(order.attempt)
        if (!attempt) {
          if (order.want.do !== 'prepare' && order.want.do !== 'run') continue
          const kept: Kept = {
            state: newAttempt(order, 'boot'),
            deadline: null,
            ready: false,
            process: null,
            highest: -1,
            before: null,
          }
          this.#disk.set(order.attempt, kept)
          attempt = this.#attempt(kept)
          agent.attempts.set(order.attempt, attempt)
        }
        attempt.order(order)
        attempt.renew()
      }
      return
    }
    const attempt = agent.attempts.get(message.attempt)
    if (message.t === 'granted') attempt?.granted(message.nonce, message.length)
    if (message.t === 'superseded') attempt?.superseded()
  }

  #startAgent(): void {
    const agent: Agent = {
      attempts: new Map(),
      wire: null,
      told: '',
      reporting: false,
      heardAt: this.#clock.now(),
    }
    this.#agent = agent
    for (const kept of this.#disk.values()) agent.attempts.set(kept.state.attempt, this.#attempt(kept))
    for (const attempt of agent.attempts.values()) attempt.adopt()
    this.#connect(agent)
    this.#endAlone(agent)
  }

  #attempt(kept: Kept): ModelAttempt {
    const attempt = new ModelAttempt(
      {
        ...this.#parts,
        clock: this.#clock,
        idle: (ms) => this.#parts.idle(this.#clock, ms),
        notice: () => this.#notice,
        send: (message) => {
          const wire = this.#agent?.wire
          wire?.send(message)
          return wire != null
        },
        changed: () => this.#changed(),
      },
      kept,
    )
    attempt.tellAgent = (what) => {
      const now = this.#agent?.attempts.get(kept.state.attempt)
      if (now) what(now)
    }
    return attempt
  }

  #connect(agent: Agent): void {
    if (this.#agent !== agent || agent.wire) return
    const reachable = this.#parts.world.now() >= this.#cutOffUntil
    agent.wire = !reachable
      ? null
      : this.#parts.connect(
          (message) => this.#agent === agent && this.received(message),
          () => {
            if (agent.wire === null) return
            agent.wire = null
            agent.heardAt = this.#clock.now()
            this.#clock.after(second, () => this.#connect(agent))
          },
        )
    if (!agent.wire) {
      this.#clock.after(2 * second, () => this.#connect(agent))
      return
    }
    agent.told = ''
    agent.wire.send({ t: 'hello', protocol: 1, agentId: this.#parts.agentId, bootId: 'boot', version: 'model' })
    this.#report(agent)
    for (const attempt of agent.attempts.values()) attempt.linked()
  }

  #changed(): void {
    const agent = this.#agent
    if (!agent || agent.reporting) return
    agent.reporting = true
    this.#clock.after(0, () => {
      agent.reporting = false
      if (this.#agent === agent) this.#report(agent)
    })
  }

  #report(agent: Agent): void {
    for (const [id, attempt] of agent.attempts)
      if (attempt.isForgotten) {
        agent.attempts.delete(id)
        const kept = this.#disk.get(id)
        if (kept) this.#images.set(id, kept)
        this.#disk.delete(id)
      }
    if (!agent.wire) return
    const attempts = [...agent.attempts.values()].map((one) => one.report())
    const machine = { cpus: 2, memoryBytes: 4e9, notice: this.#notice, confines: 'namespace' as const }
    const said = JSON.stringify({ machine, attempts: attempts.map((one) => ({ ...one, progress: null })) })
    if (said === agent.told) return
    agent.told = said
    agent.wire.send({ t: 'report', machine, attempts })
  }

  /** A rented machine that nobody hears and that has nothing left to run ends by itself. */
  #endAlone(agent: Agent): void {
    if (this.#parts.owned) return
    this.#clock.after(30 * second, () => {
      if (this.#agent !== agent) return
      this.#endAlone(agent)
      const now = this.#clock.now()
      if (agent.wire || now - agent.heardAt < this.#parts.checkin) return
      for (const attempt of agent.attempts.values())
        if (attempt.isAlive || (attempt.leaseUntil !== null && now < attempt.leaseUntil)) return
      this.die()
    })
  }
}
