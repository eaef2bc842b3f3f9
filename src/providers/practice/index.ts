import { join } from 'node:path'
import type { Offer } from '../../core/jobs/model.ts'
import { second } from '../../core/time/index.ts'
import { messageOf } from '../files.ts'
import { ProviderError, type Provider, type StartRequest } from '../port.ts'
import type { CloudApi, CloudMethod, MarketRow, PracticeControls } from './api.ts'
import { apiOf, CloudClient } from './client.ts'
import { listed, shown } from './cloud/ledger.ts'
import { overviewOf, quoteOf, rowsOf, type MarketView } from './cloud/market.ts'
import { freshState, isLive, loadState, type CloudState } from './cloud/state.ts'
import { readTrace } from './cloud/trace.ts'
import { practiceSettings } from './settings.ts'

export type { PracticeControls, PracticeMachine } from './api.ts'

export interface PracticeOptions {
  /** Portal's data directory; the cloud keeps its things in `practice` there */
  readonly home: string
  /** the connection's name, with which its offers' ids begin */
  readonly connection?: string
  /** the cloud's program: `dist/practice.js`, from source `src/providers/practice/cloud/main.ts` */
  readonly practiceEntry: string
  /** the program of its machines: `dist/agent.js` */
  readonly agentEntry: string
  /** see `PracticeSettings`; checked here */
  readonly settings?: Readonly<Record<string, unknown>>
}

/** A cloud on this machine, and the controls that play it. */
export interface Practice extends Provider, PracticeControls {
  readonly name: 'practice'
}

/** Whether a provider is the practice cloud, whose controls can be used. */
export const isPractice = (provider: Provider | undefined): provider is Practice => provider?.name === 'practice'

/**
 * Opens the practice cloud of a data directory. Its process is started by the first call that needs it, outlives this one, and
 * ends by itself. Throws a RangeError when a setting is wrong; a trace that cannot be read is refused when prices are asked for.
 */
export async function openPractice(options: PracticeOptions): Promise<Practice> {
  const connection = options.connection ?? 'practice'
  const settings = practiceSettings(options.settings ?? {})
  const folder = join(options.home, 'practice')
  const client = new CloudClient({ folder, entry: options.practiceEntry, agentEntry: options.agentEntry }, (cloud) =>
    cloud.configure(settings),
  )
  const cloud: CloudApi = apiOf((method: CloudMethod, given) => client.call(method, given as never))

  /** The market as it was left, while no cloud runs and none is needed: nothing lives there, and looking starts no process. */
  const asleep = async (): Promise<CloudState | null> => {
    if ((await client.running()) !== null) return null
    try {
      const state = (await loadState(folder)) ?? freshState(Date.now())
      return Object.values(state.machines).some(isLive) ? null : { ...state, settings }
    } catch (error) {
      throw new ProviderError('unreachable', messageOf(error))
    }
  }
  const asleepMarket = async (): Promise<MarketView | null> => {
    const state = await asleep()
    if (state === null) return null
    try {
      return { state, trace: await readTrace(settings.trace, state.traceBegun), now: Date.now() }
    } catch (error) {
      throw new ProviderError('unreachable', messageOf(error))
    }
  }

  const offerOf = (row: MarketRow): Offer => ({
    id: `${connection}/${row.pool}`,
    connection,
    provider: 'practice',
    region: row.region,
    zone: row.zone,
    type: row.type,
    market: row.market,
    price: row.price,
    notice: row.notice,
    lifetime: row.lifetime,
    cpus: row.cpus,
    memoryBytes: row.memoryBytes,
    gpus: null,
  })

  const poolOf = (id: string): string => {
    if (!id.startsWith(`${connection}/`))
      throw new ProviderError('not_found', `${JSON.stringify(id)} is not an offer of ${connection}`)
    return id.slice(connection.length + 1)
  }
  /** What people type may begin with the connection's name, as offers do. */
  const target = (typed: string): string =>
    typed === connection ? '*' : typed.startsWith(`${connection}/`) ? typed.slice(connection.length + 1) : typed

  return {
    name: 'practice',
    owns: 'rented',
    hardStop: 'renewable',
    idempotentStart: true,
    settles: 2 * second,

    // all of them, whatever is needed: why one does not fit is the caller's to explain, and what is full is said when asked for
    offers: async () => {
      const view = await asleepMarket()
      return (view === null ? (await cloud.market()).rows : rowsOf(view)).map(offerOf)
    },
    quote: async ({ id }) => {
      const view = await asleepMarket()
      return { price: view === null ? await cloud.quote(poolOf(id)) : quoteOf(view, poolOf(id)) }
    },
    start: ({ rowId, installation, offer, bootstrap, hardStopAfter }: StartRequest) =>
      cloud.start({ rowId, installation, pool: poolOf(offer.id), price: offer.price, bootstrap, hardStopAfter }),
    observe: (machineId) => cloud.observe(machineId),
    end: (machineId) => cloud.end(machineId),
    list: async () => {
      const state = await asleep()
      return state === null ? cloud.list() : Object.values(state.machines).map(listed)
    },
    renew: (machineId, length) => cloud.renew(machineId, length),
    close: async () => {},

    notice: (typed, length) => cloud.notice(target(typed), length),
    withdrawNotice: (typed) => cloud.withdrawNotice(target(typed)),
    reclaim: (typed) => cloud.reclaim(target(typed)),
    setPrice: (typed, price, ttl) => cloud.setPrice(target(typed), price, ttl),
    clearPrice: (typed) => cloud.clearPrice(typed === null ? null : target(typed)),
    setCapacity: (typed, machines) => cloud.setCapacity(target(typed), machines),
    setQuota: (typed, cpus) => cloud.setQuota(target(typed), cpus),
    setLifetime: (typed, lifetime) => cloud.setLifetime(target(typed), lifetime),
    setNoticeLength: (typed, length) => cloud.setNoticeLength(target(typed), length),
    setClock: (ahead) => cloud.setClock(ahead),
    listMachines: async () => {
      const state = await asleep()
      return state === null ? cloud.listMachines() : Object.values(state.machines).map(shown)
    },
    market: async () => {
      const view = await asleepMarket()
      return view === null ? cloud.market() : overviewOf(view)
    },
    reset: () => cloud.reset(),
    shutdown: async () => {
      if ((await asleep()) === null) await client.shutdown()
    },
  }
}
