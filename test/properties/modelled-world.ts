import pino from 'pino'
import { jobKey, memoryStore } from '../../src/checkpoints/index.ts'
import type { ToControl } from '../../src/contract/agent.ts'
import { Agents } from '../../src/control/agents.ts'
import { Happenings } from '../../src/control/api/follow.ts'
import { Jobs } from '../../src/control/api/jobs.ts'
import { openChains } from '../../src/control/chains.ts'
import type { Context } from '../../src/control/engine/context.ts'
import { Engine } from '../../src/control/engine/engine.ts'
import { openGateway } from '../../src/control/gateway.ts'
import { connect } from '../../src/control/installation.ts'
import { agentToken } from '../../src/control/keys.ts'
import type { Random } from '../../src/control/ports.ts'
import type { JobRecord, Offer } from '../../src/core/jobs/model.ts'
import { money } from '../../src/core/money/index.ts'
import { ProviderError, type Provider } from '../../src/providers/port.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { VirtualClock } from './clock.ts'
import { ModelMachine, type ModelJob } from './model-agent.ts'

const masterKey = Buffer.alloc(32, 7)
const offer = (zone: string, market: 'spot' | 'on-demand', price: number): Offer => ({
  id: `cloud/eu/${zone}/small/${market}`,
  connection: 'cloud',
  provider: 'model',
  region: 'eu',
  zone,
  type: 'small',
  market,
  price: money(price),
  notice: market === 'spot' ? 120_000 : null,
  lifetime: null,
  cpus: 2,
  memoryBytes: 4e9,
  gpus: null,
})
export const offers = [offer('a', 'spot', 0.1), offer('b', 'spot', 0.08), offer('c', 'on-demand', 0.3)]

/** A control plane that was killed: whatever it still waited for never comes, and nothing it does has an effect. */
class Life {
  dead = false
  /** dies before (or after the effect of) the nth port call from now on; null: lives */
  dieIn: { calls: number; when: 'before' | 'after' } | null = null

  /** @returns false: it died just now, or before */
  step(when: 'before' | 'after'): boolean {
    if (this.dead) return false
    if (this.dieIn && this.dieIn.when === when && --this.dieIn.calls <= 0) this.dead = true
    return !this.dead
  }
}

const neverComes = new Promise<never>(() => {})

/**
 * The real control plane (engine, store, chains of checkpoints) over a modelled provider with modelled machines, on virtual time.
 * Faults: the control plane killed before or after the effect of any port call, connections cut, machines gone, starts refused or
 * answered too late. What executes when is written down by the machines themselves.
 */
export class ModelledWorld {
  readonly clock = new VirtualClock()
  readonly machines = new Map<string, { readonly id: string; readonly machine: ModelMachine; ended: boolean }>()
  readonly checkpoints = memoryStore()
  readonly job: ModelJob = { goal: 3000, carriable: true }
  readonly violations: string[] = []
  readonly #executing = new Set<string>()
  readonly refuse = { starts: 0, answers: 0 }
  jobId = ''
  #busy = 0
  #life = new Life()
  #store!: Store
  #agents!: Agents
  #gateway!: ReturnType<typeof openGateway>
  #letters = 0
  engine!: Engine
  jobs!: Jobs
  reachable = true

  static async open(): Promise<ModelledWorld> {
    const world = new ModelledWorld()
    world.#store = await openStore(':memory:', () => world.clock.now())
    await connect(world.#store, [{ connection: 'cloud', provider: 'model', settings: {} }])
    await world.startControlPlane()
    const view = await world.jobs.create(
      {
        command: ['train'],
        env: {},
        workdir: null,
        outputs: [],
        needs: {},
        checkpoint: 'auto',
        settings: { ttl: 'off' },
        name: 'job',
      },
      { person: 'a test' },
    )
    world.jobId = view.id
    await world.pass(5000)
    return world
  }

  async close(): Promise<void> {
    this.#life.dead = true
    await this.#store.close()
  }

  async pass(duration: number): Promise<void> {
    await this.clock.pass(duration, () => this.#settle())
  }

  row(): Promise<JobRecord | null> {
    return this.#store.get('jobs', this.jobId)
  }

  attempts() {
    return this.#store.attemptsOf(this.jobId)
  }

  current(): ModelMachine | null {
    return [...this.machines.values()].find(({ machine }) => machine.alive && machine.executing)?.machine ?? null
  }

  /** A kill -9 of the control plane at a port call to come, and (at once or when it happened) a new one in its place. */
  killControlPlaneIn(calls: number, when: 'before' | 'after'): void {
    this.#life.dieIn = { calls, when }
  }

  get controlPlaneIsDead(): boolean {
    return this.#life.dead
  }

  async startControlPlane(): Promise<void> {
    this.#life.dead = true
    for (const { machine } of this.machines.values()) machine.disconnect()
    const life = new Life()
    this.#life = life
    const agents = new Agents(() => this.clock.now())
    this.#agents = agents
    const context = this.#context(life, agents)
    this.engine = new Engine(context)
    this.jobs = new Jobs(context, this.engine)
    const { engine } = this
    this.#gateway = openGateway({
      key: masterKey,
      store: this.#mortal(life, this.#store),
      agents,
      stored: (jobId) => engine.wake(jobId),
      closed: () => life.dead,
    })
    await this.engine.start()
    await this.#settle()
  }

  #context(life: Life, agents: Agents): Context {
    const random: Random = { letters: (count) => `${'x'.repeat(count)}${this.#letters++}`.slice(-count) }
    return {
      store: this.#mortal(life, this.#store),
      clock: {
        now: () => this.clock.now(),
        monotonic: () => this.clock.now(),
        after: (delay, then) => this.clock.after(delay, () => void (life.dead || then())),
      },
      random,
      providers: new Map([['cloud', this.#mortal(life, this.#provider())]]),
      agents,
      logs: {
        append: () => 0,
        size: () => 0,
        cut: () => {},
        release: () => {},
        nudge: () => {},
      } as unknown as Context['logs'],
      log: pino({ level: process.env.PORTAL_TEST_LOG ?? 'silent' }),
      installation: 'model',
      chains: this.#mortal(life, openChains(this.checkpoints, masterKey)),
      keyOf: (jobId) => jobKey(masterKey, jobId).toString('base64'),
      tokenOf: (agentId) => agentToken(masterKey, agentId),
      url: () => 'model',
      checkpoints: { directory: '' },
      outputsIn: () => true,
      happened: () => new Happenings().happened(),
    }
  }

  /** A port as a control plane sees it that may be killed at any call of it. */
  #mortal<T extends object>(life: Life, port: T): T {
    return new Proxy(port, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown
        if (typeof value !== 'function') return value
        return (...given: unknown[]) => {
          if (!life.step('before')) return neverComes
          const result: unknown = value.apply(target, given)
          if (!(result instanceof Promise)) return result
          return this.busy(() => result).then(
            (answer: unknown) => (life.step('after') ? answer : neverComes),
            (error: unknown) => {
              if (!life.step('after')) return neverComes
              throw error
            },
          )
        }
      },
    })
  }

  #provider(): Provider {
    return {
      name: 'model',
      owns: 'rented',
      hardStop: 'guest',
      idempotentStart: true,
      settles: 2000,
      offers: async () => offers,
      quote: async (one) => ({ price: one.price }),
      start: async ({ rowId }) => {
        if (this.refuse.starts > 0) {
          this.refuse.starts -= 1
          throw new ProviderError('capacity', 'nothing left')
        }
        if (!this.machines.has(rowId)) this.machines.set(rowId, { id: rowId, machine: this.#boot(rowId), ended: false })
        if (this.refuse.answers > 0) {
          this.refuse.answers -= 1
          throw new ProviderError('unreachable', 'the answer was lost')
        }
        return { machineId: rowId }
      },
      observe: async (machineId) => {
        const known = this.machines.get(machineId)
        if (!known) return { is: 'not_found' }
        return known.machine.alive ? { is: 'alive', machineId } : { is: 'terminal', state: 'ended', at: null }
      },
      end: async (machineId) => {
        const known = this.machines.get(machineId)
        const current = (await this.row())?.current
        if (known && `${this.jobId}.${current}` === machineId)
          this.violations.push(`the machine of the current attempt ${machineId} was ended`)
        if (known) known.ended = true
        known?.machine.die()
      },
      list: async () =>
        [...this.machines.values()]
          .filter(({ machine }) => machine.alive)
          .map(({ id }) => ({
            machineId: id,
            rowId: id,
            installation: 'model',
            startedAt: this.clock.now(),
            state: 'running',
          })),
      close: async () => {},
    }
  }

  #boot(rowId: string): ModelMachine {
    return new ModelMachine({
      attempt: rowId,
      token: Number(rowId.split('.')[1]),
      clock: this.clock,
      store: this.checkpoints,
      truth: {
        began: (attempt) => {
          this.#executing.add(attempt)
          if (this.#executing.size > 1)
            this.violations.push(`two attempts execute: ${[...this.#executing].join(' and ')}`)
        },
        ended: (attempt) => this.#executing.delete(attempt),
      },
      job: this.job,
      busy: (what) => this.busy(what),
      connect: (machine) => this.#connect(rowId, machine),
    })
  }

  #connect(rowId: string, machine: ModelMachine) {
    if (!this.reachable || this.#life.dead) return null
    const life = this.#life
    let open = true
    const session = this.#gateway.connected(rowId, {
      send: (message) => {
        // the same message, as a copy: nobody shares memory over a wire
        if (open && !life.dead) this.clock.after(1, () => open && machine.received(structuredClone(message)))
      },
      close: () => {
        open = false
      },
    })
    return {
      send: (message: ToControl) => {
        if (open) this.clock.after(1, () => open && !life.dead && session.received(structuredClone(message)))
      },
      close: () => {
        open = false
        if (!life.dead) session.closed()
      },
    }
  }

  async busy<T>(what: () => Promise<T>): Promise<T> {
    this.#busy += 1
    try {
      return await what()
    } finally {
      this.#busy -= 1
    }
  }

  async #settle(): Promise<void> {
    let turns = 0
    for (let quiet = 0; quiet < 2;) {
      if (++turns > 20_000) throw new Error(`something is under way for ever (${this.#busy} calls)`)
      await new Promise<void>((go) => void setImmediate(go))
      quiet = this.#busy === 0 ? quiet + 1 : 0
    }
    void this.#agents
  }
}
