import type { ListedMachine } from '../../port.ts'
import type { PracticeMachine } from '../api.ts'
import { saveState, type CloudState, type MachineRecord } from './state.ts'

/** What the cloud remembers, in memory and on disk. A change counts at once; its promise says when it is durable. */
export class Ledger {
  readonly #folder: string
  #state: CloudState
  /** the write under way, and the one that follows it with all that changed meanwhile */
  #writing: Promise<void> = Promise.resolve()
  #next: Promise<void> | null = null

  constructor(folder: string, state: CloudState) {
    this.#folder = folder
    this.#state = state
  }

  get state(): CloudState {
    return this.#state
  }

  get machines(): readonly MachineRecord[] {
    return Object.values(this.#state.machines)
  }

  machine(id: string): MachineRecord | null {
    return Object.hasOwn(this.#state.machines, id) ? (this.#state.machines[id] ?? null) : null
  }

  set(change: Partial<CloudState>): Promise<void> {
    this.#state = { ...this.#state, ...change }
    return this.written()
  }

  put(machine: MachineRecord): Promise<void> {
    return this.set({ machines: { ...this.#state.machines, [machine.id]: machine } })
  }

  /** Changes what is remembered of a machine; one that was forgotten meanwhile stays so. */
  change(id: string, change: Partial<MachineRecord>): Promise<void> {
    const machine = this.machine(id)
    return machine === null ? Promise.resolve() : this.put({ ...machine, ...change })
  }

  forget(id: string): Promise<void> {
    const others = Object.entries(this.#state.machines).filter(([other]) => other !== id)
    return this.set({ machines: Object.fromEntries(others) })
  }

  /** Resolves when the state as it is now is on disk. One write at a time; those who ask meanwhile share the next. */
  written(): Promise<void> {
    this.#next ??= this.#writeAfter(this.#writing)
    return this.#next
  }

  async #writeAfter(before: Promise<void>): Promise<void> {
    // the one before tells its own callers how it went
    await before.catch(() => {})
    this.#next = null
    this.#writing = saveState(this.#folder, this.#state)
    await this.#writing
  }
}

/** A machine without what only the cloud itself needs to know. */
export const shown = (machine: MachineRecord): PracticeMachine => {
  const { id, rowId, installation, pool, state, startedAt, endedAt, because, notice, hardStopAt, folder, confined } =
    machine
  return { id, rowId, installation, pool, state, startedAt, endedAt, because, notice, hardStopAt, folder, confined }
}

export const listed = ({ id, rowId, installation, startedAt, state }: MachineRecord): ListedMachine => ({
  machineId: id,
  rowId,
  installation,
  startedAt,
  state,
})
