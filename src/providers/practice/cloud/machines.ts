import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Duration, Instant } from '../../../core/time/index.ts'
import { isAlive, type ProcessIdentity } from '../../processes.ts'
import type { PracticeMachine } from '../api.ts'
import { boot, bootedBefore, writeNotice } from './boot.ts'
import { killAll, markedProcesses, type Confinement } from './confine.ts'
import type { Ledger } from './ledger.ts'
import { lifetimeOf, noticeByHand, poolNamed } from './market.ts'
import { interruptionsBetween } from './prices.ts'
import { isLive, rememberedFor, type CloudState, type MachineRecord } from './state.ts'

type Because = NonNullable<PracticeMachine['because']>

export interface MachinesOptions {
  readonly ledger: Ledger
  /** where the folders of the machines are */
  readonly folder: string
  readonly agentEntry: string
  readonly confinement: Confinement
  readonly now: () => Instant
}

/** The machines of the cloud as processes: booted, told, watched, ended. What is intended is written down before it is done. */
export class Machines {
  readonly #options: MachinesOptions
  readonly #ledger: Ledger
  readonly #now: () => Instant
  readonly #booting = new Set<string>()
  readonly #spawning = new Map<string, Promise<ProcessIdentity | null>>()
  readonly #ending = new Map<string, Promise<void>>()
  #lookedAt: Instant

  constructor(options: MachinesOptions) {
    this.#options = options
    this.#ledger = options.ledger
    this.#now = options.now
    this.#lookedAt = this.#marketNow()
  }

  get confinedBy(): Confinement['kind'] {
    return this.#options.confinement.kind
  }

  folderOf = (id: string): string => join(this.#options.folder, id)

  /** After a restart: what was begun is finished, what ended meanwhile has ended, and what nobody wrote down is cleared away. */
  async goOn(): Promise<void> {
    for (const { id, state, folder, notice } of this.#ledger.machines) {
      // nobody was told of it yet: who asked asks again
      if (state === 'booting' && !existsSync(join(folder, 'bootstrap.json'))) await this.#ledger.forget(id)
      else if (state === 'booting') {
        const process = await bootedBefore(folder, markedProcesses(id))
        if (process === null) this.boot(id)
        else await this.#ledger.change(id, { process, state: 'running' })
      }
      // it may have been written down without having been told
      if (state === 'running') await writeNotice(folder, notice?.endsAt ?? null)
    }
    for (const name of await readdir(this.#options.folder)) {
      if (this.#ledger.machine(name) === null) await rm(this.folderOf(name), { recursive: true, force: true })
    }
  }

  /** Boots a machine that was written down, after the time that booting takes. */
  boot(id: string): void {
    if (this.#booting.has(id)) return
    this.#booting.add(id)
    void this.#bootOnce(id)
      .catch((error: unknown) => console.error(`boot of ${id}:`, error))
      .finally(() => this.#booting.delete(id))
  }

  async #bootOnce(id: string): Promise<void> {
    await sleep(this.#ledger.state.settings.bootDelay)
    const machine = this.#ledger.machine(id)
    if (machine?.state !== 'booting') return
    const { agentEntry, confinement } = this.#options
    const spawning = boot({ machineId: id, folder: machine.folder, agentEntry, confinement })
    this.#spawning.set(id, spawning)
    const process = await spawning
    this.#spawning.delete(id)
    if (process === null) await this.end(id, 'halted')
    else if (this.#ledger.machine(id)?.state === 'booting') await this.#ledger.change(id, { process, state: 'running' })
  }

  /** Tells a machine that it will be taken; the clock that takes it is the cloud's. */
  async notify(id: string, after: Duration): Promise<void> {
    const machine = this.#ledger.machine(id)
    if (machine === null || machine.state === 'ending' || machine.state === 'ended') return
    const givenAt = this.#now()
    await this.#ledger.change(id, { notice: { givenAt, endsAt: givenAt + after } })
    await writeNotice(machine.folder, givenAt + after)
  }

  async withdraw({ id, folder }: MachineRecord): Promise<void> {
    await this.#ledger.change(id, { notice: null })
    await writeNotice(folder, null)
  }

  /** Ends a machine; whoever asks first says why, and all wait for the same end. Returns when no process of it is left. */
  end(id: string, because: Because): Promise<void> {
    const machine = this.#ledger.machine(id)
    if (machine === null || machine.state === 'ended') return Promise.resolve()
    const under = this.#ending.get(id)
    if (under !== undefined) return under
    const ending = this.#endOnce(machine, machine.because ?? because).finally(() => this.#ending.delete(id))
    this.#ending.set(id, ending)
    return ending
  }

  async #endOnce({ id, folder, confined }: MachineRecord, because: Because): Promise<void> {
    // a full disk must not keep a machine alive
    await this.#ledger.change(id, { state: 'ending', because }).catch(complain(`end of ${id}`))
    const spawned = await this.#spawning.get(id)
    await killAll(id, this.#ledger.machine(id)?.process ?? spawned ?? null, confined)
    // the token in it is of no more use, and nobody's to find
    await rm(join(folder, 'bootstrap.json'), { force: true })
    await this.#ledger.change(id, { state: 'ended', endedAt: this.#now(), process: null })
  }

  async removeFolder({ id, folder, folderRemoved }: MachineRecord): Promise<void> {
    if (folderRemoved) return
    await rm(folder, { recursive: true, force: true })
    await this.#ledger.change(id, { folderRemoved: true })
  }

  /** What would have been taken while the market's clock jumped was not. */
  clockJumped(): void {
    this.#lookedAt = this.#marketNow()
  }

  /** Looks at what is due: deadlines, processes that ended by themselves, interruptions of the market, what can be forgotten. */
  async look(): Promise<void> {
    const now = this.#now()
    const from = this.#lookedAt
    this.#lookedAt = Math.max(from, this.#marketNow())
    for (const machine of this.#ledger.machines) {
      if (machine.state === 'ended') await this.#tidy(machine, now)
      else await this.#lookAt(machine, now, from)
    }
  }

  async #lookAt(machine: MachineRecord, now: Instant, from: Instant): Promise<void> {
    const { state } = this.#ledger
    const due = machine.state === 'ending' ? (machine.because ?? 'ended') : whyDue(state, machine, now)
    if (due !== null) void this.end(machine.id, due).catch(complain(`end of ${machine.id}`))
    else if (isTaken(state, machine, from, this.#lookedAt))
      await this.notify(machine.id, noticeByHand(state, machine.pool))
  }

  async #tidy(machine: MachineRecord, now: Instant): Promise<void> {
    const since = now - (machine.endedAt ?? now)
    if (since >= this.#ledger.state.settings.keepFolders) await this.removeFolder(machine)
    if (since >= rememberedFor) await this.#ledger.forget(machine.id)
  }

  #marketNow = (): Instant => this.#now() + this.#ledger.state.clockAhead
}

/** Why a machine's time is over; null: it is not. */
function whyDue(state: CloudState, machine: MachineRecord, now: Instant): Because | null {
  const lifetime = lifetimeOf(state, poolNamed(machine.pool))
  if (machine.notice !== null && machine.notice.endsAt <= now) return 'reclaimed'
  if (lifetime !== null && machine.startedAt + lifetime <= now) return 'lifetime'
  if (machine.hardStopAt <= now) return 'hard stop'
  return machine.state === 'running' && !isAlive(machine.process) ? 'halted' : null
}

/** Whether the market takes a machine between two times by itself. */
function isTaken({ settings }: CloudState, machine: MachineRecord, from: Instant, to: Instant): boolean {
  if (!isLive(machine) || machine.notice !== null || !machine.pool.endsWith('/spot')) return false
  const market = { seed: settings.seed, pool: machine.pool, perHour: settings.interruptionsPerHour }
  return interruptionsBetween(market, from, to).length > 0
}

const complain = (what: string) => (error: unknown) => console.error(`${what}:`, error)
