import type { Bootstrap } from '../../src/core/jobs/agent.ts'
import type { Offer } from '../../src/core/jobs/model.ts'
import { money } from '../../src/core/money/index.ts'
import { ProviderError, type Provider } from '../../src/providers/port.ts'
import type { Chance } from './chance.ts'
import type { VirtualClock } from './clock.ts'
import type { ModelMachine } from './model-machine.ts'

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
export const rentedOffers = [offer('a', 'spot', 0.1), offer('b', 'spot', 0.08), offer('c', 'on-demand', 0.3)]
export const ownedOffer: Offer = {
  ...offer('', 'on-demand', 0),
  id: 'desk',
  connection: 'desk',
  provider: 'own',
  market: 'owned',
  region: '',
  type: '',
}

/** How long after an answer that did not come the effect of a call may still come, at most. */
export const settles = 20_000
const second = 1000

export interface Faults {
  /** so many starts to come are refused */
  refuse: number
  /** so many calls to come are answered by silence: their effect comes later, or not at all */
  silent: number
  /** until then nothing is known of any machine, and none can be ended */
  blindUntil: number
}

interface Rented {
  readonly rowId: string
  readonly startedAt: number
  machine: ModelMachine | null
  ended: boolean
  /** lists and answers show it from then on: what is remembered of a machine trails behind */
  readonly shownFrom: number
}

/** A cloud: calls that time out and have their effect later, machines that take their time to boot, listings that trail behind. */
export class ModelCloud {
  readonly rented = new Map<string, Rented>()
  readonly faults: Faults = { refuse: 0, silent: 0, blindUntil: 0 }
  readonly #clock: VirtualClock
  readonly #chance: Chance
  readonly #boot: (rowId: string, bootstrap: Bootstrap) => ModelMachine
  /** told before a machine is ended */
  readonly #ending: (rowId: string) => Promise<void>

  constructor(parts: {
    readonly clock: VirtualClock
    readonly chance: Chance
    readonly boot: (rowId: string, bootstrap: Bootstrap) => ModelMachine
    readonly ending: (rowId: string) => Promise<void>
  }) {
    this.#clock = parts.clock
    this.#chance = parts.chance
    this.#boot = parts.boot
    this.#ending = parts.ending
  }

  /** Machines that run or will, by the row that they were started for. */
  alive(): readonly string[] {
    return [...this.rented.values()]
      .filter((one) => !one.ended && (one.machine?.alive ?? true))
      .map(({ rowId }) => rowId)
  }

  provider(): Provider {
    return {
      name: 'model',
      owns: 'rented',
      hardStop: 'guest',
      idempotentStart: true,
      settles,
      offers: async () => rentedOffers,
      quote: async (one) => ({ price: one.price }),
      start: async ({ rowId, bootstrap }) => {
        if (this.faults.refuse > 0) {
          this.faults.refuse -= 1
          throw new ProviderError('capacity', 'nothing left')
        }
        if (this.#silent(() => this.#rent(rowId, bootstrap))) throw new ProviderError('unreachable', 'no answer came')
        this.#rent(rowId, bootstrap)
        return { machineId: rowId }
      },
      observe: async (machineId) => {
        const known = this.rented.get(machineId)
        if (this.#clock.now() < this.faults.blindUntil) return { is: 'unknown', error: 'the API does not answer' }
        if (!known || this.#clock.now() < known.shownFrom) return { is: 'not_found' }
        if (known.ended || known.machine?.alive === false) return { is: 'terminal', state: 'terminated', at: null }
        return { is: 'alive', machineId }
      },
      end: async (machineId) => {
        await this.#ending(machineId)
        if (this.#clock.now() < this.faults.blindUntil) throw new ProviderError('unreachable', 'no answer came')
        if (this.#silent(() => this.#end(machineId))) throw new ProviderError('unreachable', 'no answer came')
        this.#end(machineId)
      },
      list: async () => {
        if (this.#clock.now() < this.faults.blindUntil) throw new ProviderError('unreachable', 'no answer came')
        return [...this.rented.values()]
          .filter((one) => !one.ended && one.machine?.alive !== false && this.#clock.now() >= one.shownFrom)
          .map(({ rowId, startedAt }) => ({
            machineId: rowId,
            rowId,
            installation: 'model',
            startedAt,
            state: 'running',
          }))
      },
      close: async () => {},
    }
  }

  /** Whether this call is answered by silence; its effect may come all the same, after a while. */
  #silent(effect: () => void): boolean {
    if (this.faults.silent <= 0) return false
    this.faults.silent -= 1
    if (this.#chance.happens(0.7)) this.#clock.after(this.#chance.between(0, settles / 2), effect)
    return true
  }

  #rent(rowId: string, bootstrap: Bootstrap): void {
    if (this.rented.has(rowId)) return
    const now = this.#clock.now()
    const rented: Rented = {
      rowId,
      startedAt: now,
      machine: null,
      ended: false,
      shownFrom: now + (this.#chance.happens(0.3) ? this.#chance.between(0, settles / 2) : 0),
    }
    this.rented.set(rowId, rented)
    // most boot in seconds, some take minutes
    const takes = this.#chance.happens(0.1) ? this.#chance.between(60, 400) : this.#chance.between(0, 20)
    this.#clock.after(takes * second, () => {
      if (!rented.ended) rented.machine = this.#boot(rowId, bootstrap)
    })
  }

  #end(rowId: string): void {
    const known = this.rented.get(rowId)
    if (!known) return
    known.ended = true
    known.machine?.die()
  }
}

/** A machine of a person's own: it is there, and never ended. */
export const ownProvider = (): Provider => ({
  name: 'own',
  owns: 'owned',
  hardStop: 'guest',
  idempotentStart: true,
  settles: 0,
  offers: async () => [ownedOffer],
  quote: async ({ price }) => ({ price }),
  start: async () => ({ machineId: 'desk' }),
  observe: async (machineId) => ({ is: 'alive', machineId }),
  end: async () => {},
  list: async () => [],
  close: async () => {},
})
