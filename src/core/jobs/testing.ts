import { money } from '../money/index.ts'
import { why } from '../reasons.ts'
import { day, hour, minute, type Instant } from '../time/index.ts'
import type { AttemptExit, AttemptReport, MachineReport } from './agent.ts'
import type { AttemptRecord, Base, JobRecord, JobState, MoveRecord, Offer, RefusedValue, Wish } from './model.ts'
import { builtIn, type JobSettings } from './settings.ts'
import type { Seen, World } from './world.ts'

/** For tests: worlds of one job, each as plain as can be; a test says what is different. */

/** When a test looks. */
export const now: Instant = 1_000_000 * hour

export const ada = { person: 'ada' }

export const anOffer = (differs: Partial<Offer> = {}): Offer => ({
  id: 'cloud/eu/a/small/spot',
  connection: 'cloud',
  provider: 'model',
  region: 'eu',
  zone: 'a',
  type: 'small',
  market: 'spot',
  price: money(0.1),
  notice: 2 * minute,
  lifetime: null,
  cpus: 2,
  memoryBytes: 4e9,
  gpus: null,
  ...differs,
})

/** A machine of a person's own: its connection's name is its offer's. */
export const anOwnedOffer = (differs: Partial<Offer> = {}): Offer =>
  anOffer({ id: 'desk', connection: 'desk', market: 'owned', price: money(0), notice: null, ...differs })

export const aBase = (differs: Partial<Base> = {}): Base => ({
  slot: 3,
  token: 1,
  savedAt: now - 10 * minute,
  bytes: 1000,
  storedBytes: 500,
  verifiedAt: now - 10 * minute,
  ...differs,
})

export const aReport = (token: number, differs: Partial<AttemptReport> = {}): AttemptReport => ({
  attempt: `job.${token}`,
  token,
  version: 1,
  phase: 'running',
  method: 'sdk',
  sdk: { language: 'python', version: '1' },
  exit: null,
  probe: null,
  held: null,
  promised: null,
  voided: [],
  saveRefused: null,
  restoreFailed: null,
  saved: null,
  progress: { turns: 10, done: null, total: null },
  sample: null,
  logBytes: 0,
  outputAt: null,
  undeclared: [],
  told: [],
  ...differs,
})

export const anExit = (how: AttemptExit['how'], differs: Partial<AttemptExit> = {}): AttemptExit => ({
  code: how === 'exited' ? 0 : null,
  signal: how === 'exited' ? null : 'SIGKILL',
  at: now,
  how,
  error: null,
  ...differs,
})

export const aMachine = (differs: Partial<MachineReport> = {}): MachineReport => ({
  cpus: 2,
  memoryBytes: 4e9,
  notice: null,
  confines: 'namespace',
  ...differs,
})

export const aSocket: RefusedValue = {
  path: 'state.sock',
  type: 'socket.socket',
  reason: 'an open connection belongs to this machine',
  advice: 'close it in job.on_suspend',
}

export const anAttempt = (token: number, differs: Partial<AttemptRecord> = {}): AttemptRecord => ({
  id: `job.${token}`,
  jobId: 'job',
  token,
  version: 1,
  state: 'bound',
  offer: anOffer(),
  needs: { cpus: 1, memoryBytes: 1e9, diskBytes: 0, gpus: null, image: null },
  machineId: `machine-${token}`,
  agentId: `job.${token}`,
  intendedAt: now - hour,
  startedAt: now - hour,
  boundAt: now - hour,
  from: null,
  ranFrom: now - hour,
  ranUntil: null,
  endingAt: null,
  goneAt: null,
  lease: { grantedAt: now - 5 * minute, length: hour },
  committed: money(0.2),
  spent: null,
  logLimit: null,
  exit: null,
  ...differs,
})

type MoveStep = MoveRecord['step']

/** Built by verbs: `aJob().running().reports(1, { exit })`. Starts as a job that was just asked for. */
export class JobBuilder {
  #job: JobRecord = {
    id: 'job',
    name: 'train',
    version: 7,
    spec: {
      command: ['python3', 'train.py'],
      env: {},
      workdir: null,
      outputs: [],
      needs: { cpus: 1, memoryBytes: 1e9, diskBytes: 0, gpus: null, image: null },
      on: null,
      checkpoint: 'auto',
      settings: builtIn,
    },
    state: { is: 'queued', since: now - hour, why: why('ask.created', { by: 'ada' }) },
    wish: null,
    lastToken: 0,
    current: null,
    base: null,
    lastSlot: 0,
    createdAt: now - hour,
    ttlFrom: now - hour,
    exit: null,
    abortedMove: null,
    move: null,
    passedOver: [],
    warnings: [],
    due: now,
  }
  readonly #attempts = new Map<number, AttemptRecord>()
  readonly #seen = new Map<number, Seen>()
  #move: MoveRecord | null = null
  #lastMove: MoveRecord | null = null

  with(differs: Partial<JobRecord>): this {
    this.#job = { ...this.#job, ...differs }
    return this
  }

  in(state: JobState): this {
    return this.with({ state })
  }

  settings(differs: Partial<JobSettings>): this {
    const { spec } = this.#job
    return this.with({ spec: { ...spec, settings: { ...spec.settings, ...differs } } })
  }

  saved(differs: Partial<Base> = {}): this {
    const base = aBase(differs)
    return this.with({ base, lastSlot: Math.max(this.#job.lastSlot, base.slot) })
  }

  wishes(to: Wish['to'], differs: Partial<Extract<Wish, { to: 'move' | 'stop' }>> = {}): this {
    const asked = { by: ada, at: now - minute }
    const wishes: Record<Wish['to'], Wish> = {
      suspend: { to: 'suspend', ...asked },
      move: { to: 'move', ...asked, on: null },
      stop: { to: 'stop', ...asked, keep: true, why: why('ask.stop', { by: 'ada' }) },
    }
    return this.with({ wish: { ...wishes[to], ...differs } as Wish })
  }

  /** Adds an attempt, or changes one. */
  attempt(token: number, differs: Partial<AttemptRecord> = {}): this {
    this.#attempts.set(token, { ...(this.#attempts.get(token) ?? anAttempt(token)), ...differs })
    return this.with({ lastToken: Math.max(this.#job.lastToken, token) })
  }

  /** What is seen of an attempt beside its record. */
  sees(token: number, differs: Partial<Seen>): this {
    this.#seen.set(token, { ...this.#seenOf(token), ...differs })
    return this
  }

  reports(token: number, differs: Partial<AttemptReport>): this {
    return this.sees(token, { report: { ...(this.#seenOf(token).report ?? aReport(token)), ...differs } })
  }

  machine(token: number, differs: Partial<MachineReport>): this {
    return this.sees(token, { machine: { ...(this.#seenOf(token).machine ?? aMachine()), ...differs } })
  }

  noticed(token: number, seenAt: Instant, endsAt: Instant): this {
    return this.machine(token, { notice: { seenAt, endsAt } })
  }

  /** Nothing was heard of its agent for so long. */
  silent(token: number, since: Instant): this {
    return this.sees(token, { connected: false, heardAt: since })
  }

  /** Its provider says so, since then. */
  provider(token: number, says: NonNullable<Seen['provider']>['says'], since: Instant, askedAt: Instant = now): this {
    return this.sees(token, { provider: { says, since, askedAt, words: says === 'terminal' ? 'terminated' : says } })
  }

  starting(state: AttemptRecord['state'] = 'intended'): this {
    const there = state !== 'intended'
    return this.in({ is: 'starting', since: now - minute, token: 1 })
      .attempt(1, {
        state,
        intendedAt: now - minute,
        startedAt: there ? now - minute : null,
        machineId: there ? 'machine-1' : null,
        boundAt: null,
        ranFrom: null,
        lease: null,
      })
      .sees(1, { report: null, machine: null, connected: false, heardAt: now - hour })
  }

  running(): this {
    return this.in({ is: 'running', since: now - hour, unreachableSince: null })
      .with({ current: 1 })
      .attempt(1)
      .reports(1, {})
  }

  /** A job at a step of a move; from `target` on there is one, from `restore` on its source is held. */
  moving(step: MoveStep = 'probe'): this {
    return this.#leaving('move', step)
  }

  suspending(step: MoveStep = 'probe'): this {
    return this.#leaving('suspension', step)
  }

  suspended(): this {
    return this.saved()
      .in({
        is: 'suspended',
        since: now - hour,
        by: ada,
        why: why('ask.suspend', { by: 'ada' }),
        expiresAt: now + 3 * day - hour,
      })
      .attempt(1, { state: 'gone', ranFrom: now - 2 * hour, ranUntil: now - hour, goneAt: now - hour })
  }

  /** `token` null: no machine was found yet. */
  resuming(token: number | null = null, state: AttemptRecord['state'] = 'bound'): this {
    this.suspended()
    const was = this.#job.state as Extract<JobState, { is: 'suspended' }>
    if (token !== null)
      this.attempt(token, { state, from: 3, boundAt: state === 'bound' ? now - minute : null, ranFrom: null }).reports(
        token,
        { phase: 'preparing' },
      )
    return this.in({ is: 'resuming', since: now - minute, token, by: ada, on: null, waitUntil: null, was })
  }

  stopped(differs: Partial<Extract<JobState, { is: 'stopped' }>> = {}): this {
    return this.suspended().in({
      is: 'stopped',
      since: now - hour,
      by: ada,
      why: why('ask.stop', { by: 'ada' }),
      resumableUntil: now + 7 * day - hour,
      ...differs,
    })
  }

  move(differs: Partial<MoveRecord>): this {
    if (this.#move) this.#move = { ...this.#move, ...differs }
    return this
  }

  /** A move or suspension that was decided, and is over. */
  after(differs: Partial<MoveRecord>): this {
    this.#lastMove = { ...this.#moveOf('suspension', 'aborted'), outcome: 'aborted', ...differs }
    return this
  }

  build(): World {
    const attempts = [...this.#attempts.values()].sort((a, b) => a.token - b.token)
    const seen = new Map(attempts.map(({ token }) => [token, this.#seenOf(token)]))
    return {
      job: this.#job,
      attempts,
      move: this.#move,
      lastMove: this.#lastMove,
      seen: (token) => {
        const found = seen.get(token)
        if (!found) throw new RangeError(`the test's job has no attempt ${token}`)
        return found
      },
    }
  }

  #seenOf(token: number): Seen {
    return (
      this.#seen.get(token) ?? {
        report: null,
        machine: aMachine(),
        connected: true,
        unanswered: false,
        heardAt: now,
        provider: null,
        leaseEnds: now + hour,
        renewAsked: null,
        logBytes: 0,
        outputsIn: true,
      }
    )
  }

  #moveOf(kind: MoveRecord['kind'], step: MoveStep): MoveRecord {
    return {
      id: 'm1',
      jobId: 'job',
      version: 1,
      kind,
      by: ada,
      why: why(kind === 'move' ? 'ask.move' : 'ask.suspend', { by: 'ada' }),
      on: null,
      source: 1,
      target: null,
      step,
      slot: null,
      seal: null,
      outcome: null,
      abortWhy: null,
      refused: [],
      times: { probe: now - minute, [step]: now - minute },
    }
  }

  #leaving(kind: MoveRecord['kind'], step: MoveStep): this {
    this.running()
    const steps: readonly MoveStep[] = ['probe', 'target', 'hold', 'restore', 'promise', 'seal', 'committed']
    const reached = (one: MoveStep): boolean => steps.indexOf(step) >= steps.indexOf(one)
    const target = kind === 'move' && reached('hold')
    const held = reached('restore')
    this.#move = {
      ...this.#moveOf(kind, step),
      target: target ? 2 : null,
      slot: held ? 4 : null,
      outcome: step === 'committed' ? 'committed' : null,
    }
    if (target)
      this.attempt(2, {
        offer: anOffer({ id: 'cloud/eu/b/small/spot', zone: 'b' }),
        boundAt: now - minute,
        ranFrom: null,
        from: held ? 4 : null,
      }).reports(2, { phase: reached('promise') ? 'prepared' : held ? 'preparing' : 'new' })
    if (held)
      this.with({ lastSlot: 4 }).reports(1, {
        phase: reached('seal') ? 'promised' : 'held',
        held: { move: 'm1', slot: 4, logOffset: 100, because: 'order' },
        promised: reached('seal') ? 'm1' : null,
      })
    return this.in({ is: kind === 'move' ? 'moving' : 'suspending', since: now - minute, move: 'm1' }).with({
      move: 'm1',
    })
  }
}

export const aJob = (): JobBuilder => new JobBuilder()
