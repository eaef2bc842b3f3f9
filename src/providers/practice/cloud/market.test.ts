import { describe, expect, test } from 'vitest'
import { money } from '../../../core/money/index.ts'
import { hour, second } from '../../../core/time/index.ts'
import { pools } from './catalogue.ts'
import { mustPay, overviewOf, poolsWithin, quoteOf, rowsOf, type MarketView } from './market.ts'
import { priceAt } from './prices.ts'
import { freshState, type CloudState, type MachineRecord } from './state.ts'

const now = Date.UTC(2026, 5, 1)
const spot = 'north-1/north-1a/small/spot'
const pool = pools.find(({ id }) => id === spot) ?? expect.unreachable()

const view = (change: Partial<CloudState> = {}): MarketView => ({
  state: { ...freshState(now), ...change },
  trace: null,
  now,
})
const machines = (
  ...ids: readonly [id: string, pool: string, state: MachineRecord['state']][]
): CloudState['machines'] =>
  Object.fromEntries(
    ids.map(([id, where, state]) => [
      id,
      {
        id,
        rowId: `${id}.1`,
        installation: 'i',
        pool: where,
        state,
        startedAt: now,
        endedAt: null,
        because: null,
        notice: null,
        hardStopAt: now + hour,
        folder: '/nowhere',
        confined: 'namespace',
        process: null,
        folderRemoved: false,
      } satisfies MachineRecord,
    ]),
  )

describe('a price is', () => {
  test("the seed's, by the market's own clock", () => {
    expect(quoteOf(view(), spot)).toEqual({ micros: priceAt(1, pool, now), currency: 'USD' })
    const ahead = 40 * hour
    expect(quoteOf(view({ clockAhead: ahead }), spot).micros).toBe(priceAt(1, pool, now + ahead))
  })

  test("the trace's where it has the pool, what somebody set over both, until its time is over", () => {
    const traced = { ...view(), trace: new Map([[spot, [{ at: 0, micros: 11 }]]]) }
    expect(quoteOf(traced, spot).micros).toBe(11)
    const set = (until: number | null) => ({
      ...traced,
      state: { ...traced.state, prices: { [spot]: { micros: 22, until } } },
    })
    expect(quoteOf(set(null), spot).micros).toBe(22)
    expect(quoteOf(set(now + 1), spot).micros).toBe(22)
    expect(quoteOf(set(now), spot).micros).toBe(11)
  })

  test('agreed when it is not above what was offered, in the same currency', () => {
    const price = quoteOf(view(), spot)
    mustPay(view(), spot, price)
    mustPay(view(), spot, money(1))
    expect(() => mustPay(view(), spot, { ...price, micros: price.micros - 1 })).toThrow('an hour now, not the')
    expect(() => mustPay(view(), spot, money(1, 'EUR'))).toThrow('1 EUR that were agreed')
  })
})

describe('one more machine is refused', () => {
  test('when the pool is full: what boots or is being ended still counts, what ended does not', () => {
    const capacity = { [spot]: 2 }
    const two = machines(['a', spot, 'booting'], ['b', spot, 'ending'])
    expect(() => quoteOf(view({ capacity, machines: two }), spot)).toThrow('no capacity (2 of 2 machines in use)')
    const one = machines(['a', spot, 'running'], ['b', spot, 'ended'])
    expect(quoteOf(view({ capacity, machines: one }), spot).micros).toBeGreaterThan(0)
    expect(quoteOf(view({ capacity: { [spot]: null }, machines: two }), spot).micros).toBeGreaterThan(0)
  })

  test('when its CPUs would pass the quota of the region, whatever zone and market they are in', () => {
    const large = 'north-1/north-1b/large/on-demand'
    const held = machines(['a', large, 'running'])
    expect(() => quoteOf(view({ quotas: { 'north-1': 4 }, machines: held }), spot)).toThrow('4 of 4 CPUs')
    expect(quoteOf(view({ quotas: { 'north-1': 5 }, machines: held }), spot).micros).toBeGreaterThan(0)
    expect(quoteOf(view({ quotas: { 'north-1': null }, machines: held }), spot).micros).toBeGreaterThan(0)
    expect(quoteOf(view({ quotas: { 'west-1': 0 }, machines: held }), spot).micros).toBeGreaterThan(0)
  })
})

test('notices are promised on spot only, and a lifetime or notice that was set to none is none', () => {
  for (const row of rowsOf(view())) expect(row.notice === null).toBe(row.market === 'on-demand')
  const south = rowsOf(view()).find(({ region, market }) => region === 'south-1' && market === 'spot')
  expect(south?.notice).toBe(30 * second)
  const set = rowsOf(view({ notices: { [spot]: null }, lifetimes: { [spot]: hour } })).find((row) => row.pool === spot)
  expect(set).toMatchObject({ notice: null, lifetime: hour })
})

test('pools by their first parts, `*` for any; what is unknown with the nearest known', () => {
  expect(poolsWithin('*')).toHaveLength(pools.length)
  expect(poolsWithin('north-1/*/small/spot').map(({ id }) => id)).toEqual([spot, spot.replace('1a', '1b')])
  expect(() => poolsWithin('north-1/north-1a/smal')).toThrow('the nearest is north-1/north-1a/small')
  expect(() => poolsWithin(`${spot}/more`)).toThrow('there is no pool')
  expect(() => poolsWithin('')).toThrow('there is no pool ""')
})

test('an overview says what is used of what', () => {
  const overview = overviewOf(view({ machines: machines(['a', spot, 'running']), clockAhead: hour }))
  expect(overview).toMatchObject({ now: now + hour, clockAhead: hour, seed: 1 })
  expect(overview.quotas[0]).toEqual({ region: 'north-1', cpus: 64, used: 1 })
  expect(overview.rows.find((row) => row.pool === spot)?.used).toBe(1)
  expect(overview.machines.map(({ id }) => id)).toEqual(['a'])
})
