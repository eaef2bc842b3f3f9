import type { Market } from '../../core/jobs/model.ts'
import type { Money } from '../../core/money/index.ts'
import type { Duration, Instant } from '../../core/time/index.ts'
import type { Bootstrap, ListedMachine, Observed, ProviderErrorKind } from '../port.ts'

/** What the practice cloud is told when it is opened: the settings of its connection. */
export interface PracticeSettings {
  /** what prices and interruptions are made from */
  readonly seed: number
  /** a file of prices in place of the seed's (`time,pool,price`); null: none */
  readonly trace: string | null
  readonly currency: string
  /** from the start of a machine to its agent's */
  readonly bootDelay: Duration
  /** how often a spot pool is taken by itself, an hour; 0: only when somebody says so */
  readonly interruptionsPerHour: number
  /** how long the folder of a machine that ended is kept, for a look at its console */
  readonly keepFolders: Duration
  /** the cloud ends itself when it has had neither machines nor calls for this long */
  readonly idleExit: Duration
}

/** One row of the market: an offer as the cloud sees it. */
export interface MarketRow {
  /** `region/zone/type/market` */
  readonly pool: string
  readonly region: string
  readonly zone: string
  readonly type: string
  readonly market: Exclude<Market, 'owned'>
  readonly price: Money
  /** whether somebody set that price, and until when */
  readonly set: { readonly until: Instant | null } | null
  readonly notice: Duration | null
  readonly lifetime: Duration | null
  readonly cpus: number
  readonly memoryBytes: number
  /** machines that there are; null: as many as asked for */
  readonly capacity: number | null
  readonly used: number
}

/** A machine as its provider sees it. */
export interface PracticeMachine {
  readonly id: string
  readonly rowId: string
  readonly installation: string
  readonly pool: string
  readonly state: 'booting' | 'running' | 'ending' | 'ended'
  readonly startedAt: Instant
  readonly endedAt: Instant | null
  /** `halted`: its agent ended by itself, or its processes were killed */
  readonly because: 'ended' | 'reclaimed' | 'hard stop' | 'lifetime' | 'halted' | 'shutdown' | null
  readonly notice: { readonly givenAt: Instant; readonly endsAt: Instant } | null
  readonly hardStopAt: Instant
  readonly folder: string
  /** how it is ended for sure */
  readonly confined: 'namespace' | 'environment'
}

export interface MarketOverview {
  readonly now: Instant
  /** how far the market's clock was put forward; prices and interruptions go by it, machines do not */
  readonly clockAhead: Duration
  readonly seed: number
  readonly rows: readonly MarketRow[]
  readonly quotas: readonly { readonly region: string; readonly cpus: number | null; readonly used: number }[]
  readonly machines: readonly PracticeMachine[]
}

/** Plays the provider. A *target* is a machine (its id, or its row's) or the first parts of some pools' ids; the answer names what was touched. */
export interface PracticeControls {
  /** Says that machines will be taken in `length` ms (null: as long as their pool's notice, else 120 s), and takes them then. */
  notice(target: string, length: Duration | null): Promise<readonly PracticeMachine[]>
  /** Takes back a notice that was not carried out yet. */
  withdrawNotice(target: string): Promise<readonly PracticeMachine[]>
  /** Takes machines now, without a notice. */
  reclaim(target: string): Promise<readonly PracticeMachine[]>
  /** Sets what an hour costs, for `ttl` ms or (null) until it is cleared. */
  setPrice(target: string, price: Money, ttl: Duration | null): Promise<readonly string[]>
  /** Lets the market make the price again; null: everywhere. */
  clearPrice(target: string | null): Promise<readonly string[]>
  /** Sets how many machines there are in each pool; null: as many as asked for. Those that run are left alone. */
  setCapacity(target: string, machines: number | null): Promise<readonly string[]>
  /** Sets how many CPUs this account may have in a region; null: no limit. */
  setQuota(region: string, cpus: number | null): Promise<readonly string[]>
  /** After how long machines of these pools are ended, those that run included; null: never. */
  setLifetime(target: string, lifetime: Duration | null): Promise<readonly string[]>
  /** How long the notice of these pools is; null: none at all. */
  setNoticeLength(target: string, length: Duration | null): Promise<readonly string[]>
  /** Puts the market's clock ahead of the real one by this much. */
  setClock(ahead: Duration): Promise<{ readonly now: Instant }>
  listMachines(): Promise<readonly PracticeMachine[]>
  market(): Promise<MarketOverview>
  /** Market, capacity, quota, lifetimes, notices and clock as at first; machines stay. */
  reset(): Promise<void>
  /** Ends every machine and the cloud's process: nothing of it runs after this. */
  shutdown(): Promise<void>
}

export interface StartCall {
  readonly rowId: string
  readonly installation: string
  readonly pool: string
  readonly price: Money
  readonly bootstrap: Bootstrap
  readonly hardStopAfter: Duration
}

/** What the adapter asks the cloud's process. Each call may be repeated without harm, since an answer can be lost. */
export interface CloudApi extends PracticeControls {
  configure(settings: PracticeSettings): Promise<void>
  quote(pool: string): Promise<Money>
  start(call: StartCall): Promise<{ readonly machineId: string }>
  observe(machineId: string): Promise<Observed>
  end(machineId: string): Promise<void>
  list(): Promise<readonly ListedMachine[]>
  renew(machineId: string, length: Duration): Promise<void>
}

export const cloudMethods = [
  'notice',
  'withdrawNotice',
  'reclaim',
  'setPrice',
  'clearPrice',
  'setCapacity',
  'setQuota',
  'setLifetime',
  'setNoticeLength',
  'setClock',
  'listMachines',
  'market',
  'reset',
  'shutdown',
  'configure',
  'quote',
  'start',
  'observe',
  'end',
  'list',
  'renew',
] as const satisfies readonly (keyof CloudApi)[]

export type CloudMethod = (typeof cloudMethods)[number]

/** An answer on the wire. */
export type CloudAnswer =
  | { readonly result: unknown }
  | { readonly error: { readonly kind: ProviderErrorKind; readonly message: string } }

/** Where the cloud's process is to be found: a private file, written by the process that holds the cloud's lock. */
export interface CloudAddress {
  readonly pid: number
  readonly started: string
  readonly port: number
  readonly token: string
}
