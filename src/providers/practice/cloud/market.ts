import type { Money } from '../../../core/money/index.ts'
import { second, type Duration, type Instant } from '../../../core/time/index.ts'
import { nearest } from '../../../core/text.ts'
import { ProviderError } from '../../port.ts'
import type { MarketOverview, MarketRow } from '../api.ts'
import { shown } from './ledger.ts'
import { ordinaryCapacity, pools, regions, type Pool } from './catalogue.ts'
import { priceAt } from './prices.ts'
import { isLive, type CloudState, type MachineRecord } from './state.ts'
import { tracedPrice, type Trace } from './trace.ts'

/** The market as it stands: pure functions of what the cloud remembers and the time. */
export interface MarketView {
  readonly state: CloudState
  readonly trace: Trace | null
  readonly now: Instant
}

const ordinaryNotice: Duration = 120 * second

export function priceOf({ state, trace, now }: MarketView, pool: Pool): Money {
  const { currency, seed } = state.settings
  const set = setPrice(state, pool.id, now)
  const then = now + state.clockAhead
  const micros = set?.micros ?? (trace === null ? null : tracedPrice(trace, pool.id, then)) ?? priceAt(seed, pool, then)
  return { micros, currency }
}

const setPrice = (state: CloudState, pool: string, now: Instant) => {
  const set = state.prices[pool]
  return set === undefined || (set.until !== null && set.until <= now) ? null : set
}

/** What stands in the table of what was set, null included, else what the catalogue says. */
const setOr = <T>(table: Readonly<Record<string, T>>, key: string, ordinary: T): T => {
  const set = table[key]
  return set === undefined ? ordinary : set
}

export const lifetimeOf = (state: CloudState, pool: Pool): Duration | null =>
  setOr(state.lifetimes, pool.id, pool.region.lifetime)

/** What a pool's offers promise: machines on demand are not taken, so they promise nothing. */
export const noticeOf = (state: CloudState, pool: Pool): Duration | null =>
  pool.market === 'spot' ? setOr(state.notices, pool.id, pool.region.notice) : null

/** How long a notice is that somebody gives by hand without saying. */
export const noticeByHand = (state: CloudState, pool: string): Duration => {
  const known = pools.find(({ id }) => id === pool)
  return (known === undefined ? null : noticeOf(state, known)) ?? ordinaryNotice
}

const machinesIn = (state: CloudState): readonly MachineRecord[] => Object.values(state.machines).filter(isLive)

const usedIn = (state: CloudState, pool: string): number =>
  machinesIn(state).filter((machine) => machine.pool === pool).length

function quotaOf(state: CloudState, region: string): { readonly cpus: number | null; readonly used: number } {
  const ordinary = regions.find(({ name }) => name === region)?.quota ?? null
  const cpus = new Map(pools.map(({ id, type }) => [id, type.cpus]))
  const used = machinesIn(state)
    .filter(({ pool }) => pool.startsWith(`${region}/`))
    .reduce((sum, { pool }) => sum + (cpus.get(pool) ?? 0), 0)
  return { cpus: setOr(state.quotas, region, ordinary), used }
}

export function rowOf(view: MarketView, pool: Pool): MarketRow {
  const { state, now } = view
  const set = setPrice(state, pool.id, now)
  return {
    pool: pool.id,
    region: pool.region.name,
    zone: pool.zone,
    type: pool.type.name,
    market: pool.market,
    price: priceOf(view, pool),
    set: set === null ? null : { until: set.until },
    notice: noticeOf(state, pool),
    lifetime: lifetimeOf(state, pool),
    cpus: pool.type.cpus,
    memoryBytes: pool.type.memoryBytes,
    capacity: setOr<number | null>(state.capacity, pool.id, ordinaryCapacity),
    used: usedIn(state, pool.id),
  }
}

export const rowsOf = (view: MarketView): readonly MarketRow[] => pools.map((pool) => rowOf(view, pool))

export const overviewOf = (view: MarketView): MarketOverview => ({
  now: view.now + view.state.clockAhead,
  clockAhead: view.state.clockAhead,
  seed: view.state.settings.seed,
  rows: rowsOf(view),
  quotas: regions.map(({ name }) => ({ region: name, ...quotaOf(view.state, name) })),
  machines: Object.values(view.state.machines).map(shown),
})

/** The price of a pool where one more machine could be started. Throws `not_found`, `quota`, `capacity`. */
export function quoteOf(view: MarketView, id: string): Money {
  const pool = poolNamed(id)
  const quota = quotaOf(view.state, pool.region.name)
  if (quota.cpus !== null && quota.used + pool.type.cpus > quota.cpus)
    throw new ProviderError(
      'quota',
      `${pool.region.name}: ${quota.used} of ${quota.cpus} CPUs of the quota are in use, ${pool.type.cpus} more are needed`,
    )
  const { capacity, used } = rowOf(view, pool)
  if (capacity !== null && used >= capacity)
    throw new ProviderError('capacity', `${id}: no capacity (${used} of ${capacity} machines in use)`)
  return priceOf(view, pool)
}

/** Throws `price_changed` when `agreed` would not pay for an hour. */
export function mustPay(view: MarketView, id: string, agreed: Money): void {
  const price = priceOf(view, poolNamed(id))
  if (price.micros > agreed.micros || price.currency !== agreed.currency)
    throw new ProviderError(
      'price_changed',
      `${id} costs ${price.micros / 1e6} ${price.currency} an hour now, not the ${agreed.micros / 1e6} ${agreed.currency} that were agreed`,
    )
}

export function poolNamed(id: string): Pool {
  const pool = pools.find((one) => one.id === id)
  if (pool === undefined)
    throw unknown(
      'pool',
      id,
      pools.map((one) => one.id),
    )
  return pool
}

/** The pools whose ids begin with these parts (`north-1/north-1a`), `*` standing for any part. Throws `not_found` with the nearest known. */
export function poolsWithin(target: string): readonly Pool[] {
  const spelled = target.split('/')
  const found = pools.filter(({ id }) => {
    const known = id.split('/')
    return spelled.length <= known.length && spelled.every((part, i) => part === '*' || part === known[i])
  })
  if (found.length > 0) return found
  const prefixes = pools.flatMap(({ id }) => {
    const known = id.split('/')
    return known.map((_, n) => known.slice(0, n + 1).join('/'))
  })
  throw unknown('pool', target, [...new Set(prefixes)])
}

/** Whether a target can be meant as pools: otherwise it is a machine. */
export const namesPools = (target: string): boolean =>
  target === '*' || target.includes('/') || regions.some(({ name }) => name === target)

export function unknown(what: string, typed: string, known: readonly string[]): ProviderError {
  const near = nearest(typed, known)
  const help = near === null ? `known: ${known.slice(0, 5).join(', ') || 'none'}` : `the nearest is ${near}`
  return new ProviderError('not_found', `there is no ${what} ${JSON.stringify(typed)}; ${help}`)
}
