import pino from 'pino'
import { StoreError } from '../../src/checkpoints/errors.ts'
import { jobKey, memoryStore } from '../../src/checkpoints/index.ts'
import type { AttemptSeen } from '../../src/agent/model.ts'
import { reportOf } from '../../src/agent/report.ts'
import { newAttempt } from '../../src/agent/step.ts'
import { Agents } from '../../src/control/agents.ts'
import { Happenings } from '../../src/control/api/follow.ts'
import { Jobs } from '../../src/control/api/jobs.ts'
import { openChains } from '../../src/control/chains.ts'
import type { Context } from '../../src/control/engine/context.ts'
import { Engine } from '../../src/control/engine/engine.ts'
import { openGateway } from '../../src/control/gateway.ts'
import type { AgentGateway } from '../../src/control/http/api.ts'
import { connect } from '../../src/control/installation.ts'
import { agentToken } from '../../src/control/keys.ts'
import type { JobRecord } from '../../src/core/jobs/model.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { Chance } from './chance.ts'
import { CheckedStore } from './checked-store.ts'
import { VirtualClock } from './clock.ts'
import { ModelMachine } from './model-machine.ts'
import { ModelCloud, ownProvider } from './model-provider.ts'
import { Network } from './network.ts'
import { Truth } from './truth.ts'

const masterKey = Buffer.alloc(32, 7)
const minute = 60_000

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

/** What an agent sees that has no such attempt. */
const noBody: AttemptSeen = {
  lease: null,
  keeper: 'over',
  kept: { is: 'new' },
  keptAt: null,
  workdir: 'absent',
  connected: false,
  restored: null,
  let: false,
  frozen: false,
  asks: false,
  suspect: false,
  notice: null,
  busy: null,
  retryAt: 0,
}

const neverComes = new Promise<never>(() => {})

interface Plane {
  readonly life: Life
  readonly agents: Agents
  readonly engine: Engine
  readonly jobs: Jobs
  readonly gateway: AgentGateway
}

export interface WorldOptions {
  readonly seed: number
  /** how long a job may run, as `--ttl` says it */
  readonly ttl: string
}

/**
 * The real control plane (engine, store, chains of checkpoints) and the real agent's decisions, over a modelled network, modelled
 * clouds and processes, on virtual time. Every port can fail: control planes and agents are killed before or after the effect of
 * a call, two control planes live at once, calls have their effect later than they are answered, connections break and are slow.
 */
export class ModelledWorld {
  readonly clock = new VirtualClock()
  readonly chance: Chance
  readonly truth = new Truth(this.clock)
  readonly network: Network
  readonly cloud: ModelCloud
  readonly checkpoints = memoryStore()
  readonly machines = new Map<string, ModelMachine>()
  readonly jobIds: string[] = []
  /** so many calls of control planes to the store of checkpoints fail */
  storeFails = 0
  carriable = true
  /** jobs that were asked to stop, and not to go on since */
  readonly stopped = new Set<string>()
  readonly #options: WorldOptions
  readonly #planes: Plane[] = []
  #busy = 0
  #letters = 0
  #checked!: CheckedStore

  private constructor(options: WorldOptions) {
    this.#options = options
    this.chance = new Chance(options.seed)
    this.truth.beginning = (attempt) => void this.busy(() => this.#began(attempt))
    this.network = new Network(this.clock, this.chance)
    this.cloud = new ModelCloud({
      clock: this.clock,
      chance: this.chance,
      boot: (rowId, { agentId, checkin }) => this.#boot(agentId, rowId, checkin, false),
      ending: (rowId) => this.#ending(rowId),
    })
  }

  static async open(options: WorldOptions): Promise<ModelledWorld> {
    const world = new ModelledWorld(options)
    world.#checked = new CheckedStore(await openStore(':memory:', () => world.clock.now()), world.truth, world.chance)
    await connect(world.store, [
      { connection: 'cloud', provider: 'model', settings: {} },
      { connection: 'desk', provider: 'own', settings: {} },
    ])
    await world.startControlPlane()
    world.#boot('desk', 'desk', Infinity, true)
    await world.run('cloud')
    // most come up meanwhile; those that take longer are met while they start
    await world.pass(30_000)
    return world
  }

  async close(): Promise<void> {
    for (const { life } of this.#planes) life.dead = true
    await this.store.close()
  }

  get store(): Store {
    return this.#checked.store
  }

  get checked(): CheckedStore {
    return this.#checked
  }

  async pass(duration: number): Promise<void> {
    await this.clock.pass(duration, () => this.#settle())
  }

  /** Asks for another job, on the cloud or at the desk. */
  async run(on: 'cloud' | 'desk'): Promise<void> {
    const plane = this.plane
    if (!plane) return
    const settings = {
      ttl: this.#options.ttl,
      'lease.length': '10m',
      'lease.renew': '3m',
      'move.hold': '1m',
      'start.timeout': '5m',
      'restore.timeout': '2m',
      'safe_point.wait': '1m',
      checkin: '2m',
    }
    const name = `job${this.jobIds.length}`
    const asked = plane.jobs.create(
      { command: ['train'], env: {}, workdir: null, outputs: [], needs: {}, checkpoint: 'auto', settings, on, name },
      { person: 'a test' },
    )
    asked.catch((error: unknown) => this.truth.wrong(String(error)))
    await this.pass(300)
    // whoever asked may never have heard of it
    const made = await this.store.jobByName(name)
    if (made) this.jobIds.push(made.id)
  }

  rows(): Promise<readonly (JobRecord | null)[]> {
    return Promise.all(this.jobIds.map((id) => this.store.get('jobs', id)))
  }

  /** The newest job's name; what people ask is asked of it. */
  get name(): string {
    return `job${this.jobIds.length - 1}`
  }

  /** The control plane that people and agents reach: the newest one that lives. */
  get plane(): Plane | null {
    return this.#planes.findLast(({ life }) => !life.dead) ?? null
  }

  /** The machine of the newest job's current attempt, whether it executes or is held. */
  async busyMachine(): Promise<ModelMachine | null> {
    const [job] = (await this.rows()).toReversed()
    if (!job || job.current === null) return null
    const machine = this.machines.get(`${job.id}.${job.current}`) ?? this.machines.get('desk') ?? null
    return machine?.alive ? machine : null
  }

  /** A machine that is rented for something and on which nothing executes: a target, most of the time. */
  idleMachine(): ModelMachine | null {
    return (
      [...this.machines].findLast(([id, { alive, owned }]) => alive && !owned && !this.truth.isExecuting(id))?.[1] ??
      null
    )
  }

  /** An agent with a token of its own tells that attempts which are not its own have ended, and what else it likes. */
  async lie(from: string): Promise<void> {
    const [job] = (await this.rows()).toReversed()
    const { plane } = this
    if (!job || job.current === null || !plane) return
    const attempt = `${job.id}.${job.current}`
    if (from === (await this.store.get('attempts', attempt))?.agentId) return
    const exit = { code: 0, signal: null, at: this.clock.now(), how: 'exited', error: null } as const
    const told = newAttempt({ attempt, token: job.current, jobVersion: job.version, want: { do: 'end' } }, 'boot')
    const nothing = { progress: { turns: 1, done: 1, total: 1 }, sample: null, logBytes: 0, outputAt: null }
    const now = { boot: this.clock.now(), wall: this.clock.now() }
    const report = { ...reportOf({ ...told, exit }, noBody, now, nothing), phase: 'ended', exit } as const
    const machine = { cpus: 1, memoryBytes: 1, notice: null, confines: 'namespace' } as const
    const session = plane.gateway.connected(from, { send: () => {}, close: () => {} })
    session.received({ t: 'report', machine, attempts: [report] })
    session.received({ t: 'renew', attempt, nonce: 'stolen' })
    await this.pass(100)
    session.closed()
  }

  /** A kill -9 of the control plane at a port call to come. */
  killControlPlaneIn(calls: number, when: 'before' | 'after'): void {
    const plane = this.plane
    if (plane) plane.life.dieIn = { calls, when }
  }

  /** `beside`: the one before does not know that it was replaced, and goes on. */
  async startControlPlane(beside = false): Promise<void> {
    if (!beside) for (const { life } of this.#planes) life.dead = true
    this.network.breakSome(beside ? 0.5 : 1)
    const life = new Life()
    const agents = new Agents(() => this.clock.now())
    const context = this.#context(life, agents)
    const engine = new Engine(context)
    const gateway = openGateway({
      key: masterKey,
      store: context.store,
      agents,
      stored: (jobId) => engine.wake(jobId),
      closed: () => life.dead,
    })
    this.#planes.push({ life, agents, engine, jobs: new Jobs(context, engine), gateway })
    void engine.start()
    await this.#settle()
  }

  #context(life: Life, agents: Agents): Context {
    return {
      store: this.#mortal(life, this.store),
      clock: {
        now: () => this.clock.now(),
        monotonic: () => this.clock.monotonic(),
        after: (delay, then) => this.clock.after(delay, () => void (life.dead || then())),
      },
      random: { letters: (count) => `${'x'.repeat(count)}${this.#letters++}`.slice(-count) },
      providers: new Map([
        ['cloud', this.#mortal(life, this.cloud.provider())],
        ['desk', this.#mortal(life, ownProvider())],
      ]),
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
      chains: this.#mortal(life, openChains(this.checkpoints, masterKey), () => {
        if (this.storeFails <= 0) return
        this.storeFails -= 1
        if (this.chance.happens(0.3)) return
        throw new StoreError('io', 'the store of checkpoints does not answer')
      }),
      keyOf: (jobId) => jobKey(masterKey, jobId).toString('base64'),
      tokenOf: (agentId) => agentToken(masterKey, agentId),
      url: () => 'model',
      checkpoints: { directory: '' },
      outputsIn: () => true,
      happened: () => new Happenings().happened(),
    }
  }

  /** A port as a control plane sees it that may be killed at any call of it; `fault` throws where the call fails. */
  #mortal<T extends object>(life: Life, port: T, fault: () => void = () => {}): T {
    return new Proxy(port, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown
        if (typeof value !== 'function') return value
        return (...given: unknown[]) => {
          if (!life.step('before')) return neverComes
          const act = async () => {
            fault()
            return (await value.apply(target, given)) as unknown
          }
          return this.busy(act).then(
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

  /** Whoever is current is never fenced: nobody else may have written behind it. */
  async #fenced(id: string): Promise<void> {
    const attempt = await this.store.get('attempts', id)
    const job = attempt && (await this.store.get('jobs', attempt.jobId))
    const excused = this.truth.haunted.has(id) || this.truth.paused.has(id)
    if (attempt && job?.current === attempt.token && !excused) this.truth.wrong(`the current attempt ${id} was fenced`)
  }

  async #began(id: string): Promise<void> {
    const attempt = await this.store.get('attempts', id)
    if (attempt?.state === 'gone' && !this.truth.revived.has(id))
      this.truth.wrong(`attempt ${id} begins to execute, though it is said to be gone`)
  }

  async #ending(rowId: string): Promise<void> {
    const row = await this.store.get('attempts', rowId)
    if (row?.state !== 'ending') this.truth.wrong(`the machine of ${rowId} was ended, which is ${row?.state}`)
    const job = row && (await this.store.get('jobs', row.jobId))
    if (job && row && job.current === row.token)
      this.truth.wrong(`the machine of the current attempt ${rowId} was ended`)
  }

  #boot(agentId: string, rowId: string, checkin: number, owned: boolean): ModelMachine {
    const machine: ModelMachine = new ModelMachine({
      agentId,
      owned,
      checkin: Math.min(checkin, 60 * minute),
      world: this.clock,
      chance: this.chance,
      truth: this.truth,
      store: this.checkpoints,
      goal: 9000,
      carriable: () => this.carriable,
      busy: (what) => this.busy(what),
      fenced: (attempt) => this.#fenced(attempt),
      idle: async (clock, ms) => {
        this.#busy -= 1
        await new Promise<void>((go) => void clock.after(ms, go))
        this.#busy += 1
      },
      connect: (received, closed) => {
        const plane = this.plane
        const door = plane && {
          isOpen: () => !plane.life.dead,
          connected: (id: string, link: Parameters<AgentGateway['connected']>[1]) => plane.gateway.connected(id, link),
        }
        return this.network.connect(
          door,
          agentId,
          received,
          (message) => machine.alive && machine.received(message),
          closed,
        )
      },
    })
    this.machines.set(rowId, machine)
    return machine
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
  }
}
