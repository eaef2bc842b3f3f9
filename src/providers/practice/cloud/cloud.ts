import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Money } from '../../../core/money/index.ts'
import type { Duration, Instant } from '../../../core/time/index.ts'
import { messageOf, privateFolder } from '../../files.ts'
import { ProviderError, type ListedMachine, type Observed } from '../../port.ts'
import type { CloudApi, MarketOverview, PracticeMachine, PracticeSettings, StartCall } from '../api.ts'
import { practiceSettings } from '../settings.ts'
import { furnish } from './boot.ts'
import { regions } from './catalogue.ts'
import { findConfinement } from './confine.ts'
import { Ledger, listed, shown } from './ledger.ts'
import { Machines } from './machines.ts'
import {
  mustPay,
  namesPools,
  noticeByHand,
  overviewOf,
  poolsWithin,
  quoteOf,
  unknown,
  type MarketView,
} from './market.ts'
import { freshState, isLive, loadState, untouchedMarket, type CloudState, type MachineRecord } from './state.ts'
import { readTrace, type Trace } from './trace.ts'

/**
 * The practice cloud: a market, and machines that are real processes. What it remembers is on disk before it is answered or
 * acted on, so that a cloud that was killed goes on where it was: machines outlive it and are found again.
 */
export class Cloud implements CloudApi {
  readonly #ledger: Ledger
  readonly #machines: Machines
  readonly #now: () => Instant
  #trace: Trace | null = null
  /** why the trace that was set cannot be used */
  #traceError: string | null = null
  #closing = false

  private constructor(ledger: Ledger, machines: Machines, now: () => Instant) {
    this.#ledger = ledger
    this.#machines = machines
    this.#now = now
  }

  /** Opens the cloud of a folder, and goes on with what was under way. The caller holds the folder's lock. */
  static async open(folder: string, agentEntry: string, now: () => Instant): Promise<Cloud> {
    const machinesFolder = join(folder, 'machines')
    await privateFolder(machinesFolder)
    const ledger = new Ledger(folder, (await loadState(folder)) ?? freshState(now()))
    const confinement = await findConfinement()
    const machines = new Machines({ ledger, folder: machinesFolder, agentEntry, confinement, now })
    const cloud = new Cloud(ledger, machines, now)
    await cloud.#readTrace()
    await machines.goOn()
    return cloud
  }

  get idleExit(): Duration {
    return this.#ledger.state.settings.idleExit
  }

  get hasMachines(): boolean {
    return this.#ledger.machines.some(isLive)
  }

  look(): Promise<void> {
    return this.#machines.look()
  }

  // what a provider offers

  async configure(given: PracticeSettings): Promise<void> {
    const settings = practiceSettings({ ...given })
    const { state } = this.#ledger
    const traceBegun = settings.trace === state.settings.trace ? state.traceBegun : this.#now()
    await this.#ledger.set({ settings, traceBegun })
    await this.#readTrace()
  }

  async quote(pool: string): Promise<Money> {
    return quoteOf(this.#view(), pool)
  }

  async start(call: StartCall): Promise<{ readonly machineId: string }> {
    const { rowId, installation, pool, price, bootstrap } = call
    if (this.#closing) throw new ProviderError('unreachable', 'the practice cloud is shutting down')
    const before = this.#ledger.machines.find((one) => one.rowId === rowId && one.installation === installation)
    if (before === undefined) {
      quoteOf(this.#view(), pool)
      mustPay(this.#view(), pool, price)
    }
    const machine = before ?? this.#intended(call)
    // from here on it counts against capacity, and the same start finds it
    const written = before === undefined ? this.#ledger.put(machine) : this.#ledger.written()
    if (machine.state === 'booting') {
      try {
        await furnish(machine.folder, bootstrap)
      } catch (error) {
        await this.#machines.end(machine.id, 'halted')
        throw new ProviderError(
          'unreachable',
          `the folder of machine ${machine.id} could not be made: ${messageOf(error)}`,
        )
      }
    }
    await written
    if (machine.state === 'booting') this.#machines.boot(machine.id)
    return { machineId: machine.id }
  }

  #intended({ rowId, installation, pool, hardStopAfter }: StartCall): MachineRecord {
    const id = `m-${randomBytes(4).toString('hex')}`
    const startedAt = this.#now()
    return {
      id,
      rowId,
      installation,
      pool,
      state: 'booting',
      startedAt,
      endedAt: null,
      because: null,
      notice: null,
      hardStopAt: startedAt + length(hardStopAfter),
      folder: this.#machines.folderOf(id),
      confined: this.#machines.confinedBy,
      process: null,
      folderRemoved: false,
    }
  }

  async observe(machineId: string): Promise<Observed> {
    const machine = this.#ledger.machine(machineId)
    if (machine === null) return { is: 'not_found' }
    if (isLive(machine)) return { is: 'alive', machineId }
    return { is: 'terminal', state: machine.because ?? 'ended', at: machine.endedAt }
  }

  async end(machineId: string): Promise<void> {
    await this.#machines.end(machineId, 'ended')
  }

  async list(): Promise<readonly ListedMachine[]> {
    return this.#ledger.machines.map(listed)
  }

  async renew(machineId: string, hardStopAfter: Duration): Promise<void> {
    const machine = this.#ledger.machine(machineId)
    if (machine === null) throw unknown('machine', machineId, Object.keys(this.#ledger.state.machines))
    if (machine.state === 'ending' || machine.state === 'ended')
      throw new ProviderError('terminal', `machine ${machineId} has ended: ${machine.because}`)
    await this.#ledger.change(machineId, { hardStopAt: this.#now() + length(hardStopAfter) })
  }

  // what plays the provider

  async notice(target: string, given: Duration | null): Promise<readonly PracticeMachine[]> {
    const found = this.#targets(target)
    const after = given === null ? null : length(given)
    await Promise.all(
      found.map(({ id, pool }) => this.#machines.notify(id, after ?? noticeByHand(this.#ledger.state, pool))),
    )
    return this.#shown(found)
  }

  async withdrawNotice(target: string): Promise<readonly PracticeMachine[]> {
    const found = this.#targets(target).filter(({ notice }) => notice !== null)
    await Promise.all(found.map((machine) => this.#machines.withdraw(machine)))
    return this.#shown(found)
  }

  async reclaim(target: string): Promise<readonly PracticeMachine[]> {
    const found = this.#targets(target)
    await Promise.all(found.map(({ id }) => this.#machines.end(id, 'reclaimed')))
    return this.#shown(found)
  }

  async setPrice(target: string, price: Money, ttl: Duration | null): Promise<readonly string[]> {
    const { currency } = this.#ledger.state.settings
    if (price.currency !== currency)
      throw new ProviderError('not_found', `this cloud's prices are in ${currency}, not in ${price.currency}`)
    const until = ttl === null ? null : this.#now() + length(ttl)
    return this.#setForPools('prices', target, { micros: whole(price.micros, 'a price'), until })
  }

  async clearPrice(target: string | null): Promise<readonly string[]> {
    const cleared = poolsWithin(target ?? '*').map(({ id }) => id)
    const left = Object.entries(this.#ledger.state.prices).filter(([pool]) => !cleared.includes(pool))
    await this.#ledger.set({ prices: Object.fromEntries(left) })
    return cleared
  }

  setCapacity(target: string, machines: number | null): Promise<readonly string[]> {
    return this.#setForPools('capacity', target, machines === null ? null : whole(machines, 'a number of machines'))
  }

  async setQuota(region: string, cpus: number | null): Promise<readonly string[]> {
    const names = regions.map(({ name }) => name)
    if (!names.includes(region)) throw unknown('region', region, names)
    const { quotas } = this.#ledger.state
    await this.#ledger.set({ quotas: { ...quotas, [region]: cpus === null ? null : whole(cpus, 'a quota of CPUs') } })
    return [region]
  }

  setLifetime(target: string, lifetime: Duration | null): Promise<readonly string[]> {
    return this.#setForPools('lifetimes', target, lifetime === null ? null : length(lifetime))
  }

  setNoticeLength(target: string, notice: Duration | null): Promise<readonly string[]> {
    return this.#setForPools('notices', target, notice === null ? null : length(notice))
  }

  async setClock(ahead: Duration): Promise<{ readonly now: Instant }> {
    await this.#ledger.set({ clockAhead: length(ahead) })
    this.#machines.clockJumped()
    return { now: this.#now() + ahead }
  }

  async reset(): Promise<void> {
    await this.#ledger.set(untouchedMarket)
    this.#machines.clockJumped()
  }

  async market(): Promise<MarketOverview> {
    return overviewOf(this.#view())
  }

  async listMachines(): Promise<readonly PracticeMachine[]> {
    return this.#ledger.machines.map(shown)
  }

  async shutdown(): Promise<void> {
    this.#closing = true
    await Promise.all(this.#ledger.machines.map(({ id }) => this.#machines.end(id, 'shutdown')))
    await Promise.all(this.#ledger.machines.map((machine) => this.#machines.removeFolder(machine)))
  }

  /** The machines that are meant: one by its id or its row's, or all that live in some pools. */
  #targets(target: string): readonly MachineRecord[] {
    const live = this.#ledger.machines.filter(isLive)
    if (namesPools(target)) {
      const ids = new Set(poolsWithin(target).map(({ id }) => id))
      return live.filter(({ pool }) => ids.has(pool))
    }
    const named = (one: MachineRecord): boolean => one.id === target || one.rowId === target
    const found = live.filter(named)
    if (found.length > 0) return found
    const ended = this.#ledger.machines.find(named)
    if (ended !== undefined) throw new ProviderError('not_found', `machine ${target} has ended: ${ended.because}`)
    const known = live.flatMap(({ id, rowId }) => [id, rowId])
    throw unknown('machine or pool', target, [...known, ...regions.map(({ name }) => name)])
  }

  #shown(found: readonly MachineRecord[]): readonly PracticeMachine[] {
    return found
      .map(({ id }) => this.#ledger.machine(id))
      .filter((one) => one !== null)
      .map(shown)
  }

  #view(): MarketView {
    if (this.#traceError !== null) throw new ProviderError('unreachable', this.#traceError)
    return { state: this.#ledger.state, trace: this.#trace, now: this.#now() }
  }

  async #setForPools<K extends 'prices' | 'capacity' | 'lifetimes' | 'notices'>(
    table: K,
    target: string,
    value: CloudState[K][string],
  ): Promise<readonly string[]> {
    const ids = poolsWithin(target).map(({ id }) => id)
    const set = Object.fromEntries(ids.map((id) => [id, value]))
    await this.#ledger.set({ [table]: { ...this.#ledger.state[table], ...set } })
    return ids
  }

  /** A trace that cannot be used keeps the market closed, and nothing else: machines are watched and ended all the same. */
  async #readTrace(): Promise<void> {
    const { settings, traceBegun } = this.#ledger.state
    try {
      this.#trace = await readTrace(settings.trace, traceBegun)
      this.#traceError = null
    } catch (error) {
      this.#traceError = messageOf(error)
    }
  }
}

/** A length of time as it came over the wire. */
function length(value: Duration): Duration {
  return whole(value, 'a length of time in ms')
}

function whole(value: number, what: string): number {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new ProviderError('not_found', `${what} is a whole number from 0 on, not ${JSON.stringify(value)}`)
  return value
}
