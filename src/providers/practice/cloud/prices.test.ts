import { expect, test } from 'vitest'
import { hour, minute } from '../../../core/time/index.ts'
import { pools } from './catalogue.ts'
import { interruptionsBetween, priceAt, priceStep } from './prices.ts'
import { parseTrace, tracedPrice } from './trace.ts'

const start = Date.UTC(2026, 0, 1)
const of = (id: string) => {
  const pool = pools.find((one) => one.id === id)
  if (pool === undefined) throw new Error(id)
  return pool
}
const spot = of('north-1/north-1a/small/spot')
const hours = Array.from({ length: 24 * 14 }, (_, n) => start + n * hour)

const differ = (a: readonly number[], b: readonly number[]) => a.filter((price, i) => price !== b[i]).length

test('the same seed, pool and time: the same price, whatever was asked before', () => {
  const forward = hours.map((at) => priceAt(7, spot, at))
  const backward = hours
    .toReversed()
    .map((at) => priceAt(7, spot, at))
    .toReversed()
  expect(backward).toEqual(forward)
  // worked out once and written down: a change of the function is a change of every trace that was seen with it
  expect(hours.slice(0, 4).map((at) => priceAt(7, spot, at))).toMatchInlineSnapshot(`
    [
      18600,
      17300,
      21500,
      18100,
    ]
  `)
})

test('another seed, another market; another pool, another price', () => {
  const prices = hours.map((at) => priceAt(7, spot, at))
  expect(
    differ(
      prices,
      hours.map((at) => priceAt(8, spot, at)),
    ),
  ).toBeGreaterThan(hours.length * 0.9)
  const next = of('north-1/north-1b/small/spot')
  expect(
    differ(
      prices,
      hours.map((at) => priceAt(7, next, at)),
    ),
  ).toBeGreaterThan(hours.length * 0.9)
})

test('spot prices move, stay for five minutes, and never pass the price on demand', () => {
  for (const pool of pools.filter(({ market }) => market === 'spot')) {
    const onDemand = of(pool.id.replace('/spot', '/on-demand'))
    const seen = new Set<number>()
    for (const at of hours) {
      const price = priceAt(7, pool, at)
      expect(Number.isSafeInteger(price)).toBe(true)
      expect(price).toBeGreaterThan(0)
      expect(price).toBeLessThanOrEqual(priceAt(7, onDemand, at))
      expect(priceAt(7, pool, at + priceStep - 1)).toBe(price)
      seen.add(price)
    }
    expect(seen.size).toBeGreaterThan(50)
  }
})

test('interruptions come at their rate, and a span cut in two has the same ones', () => {
  const market = { seed: 7, pool: spot.id, perHour: 0.5 }
  const all = interruptionsBetween(market, start, start + 2000 * hour)
  expect(all.length).toBeGreaterThan(900)
  expect(all.length).toBeLessThan(1100)
  const cut = start + 777 * hour + 3 * minute
  expect([
    ...interruptionsBetween(market, start, cut),
    ...interruptionsBetween(market, cut, start + 2000 * hour),
  ]).toEqual(all)
  expect(interruptionsBetween({ ...market, perHour: 0 }, start, start + hour)).toEqual([])
})

test('a trace: the newest price at or before the time, the first one before it began', () => {
  const trace = parseTrace(
    `# recorded\ntime,pool,price\n+60, ${spot.id}, 0.02\n+0,${spot.id},0.01\n2026-01-01T01:00:00Z,${spot.id},0.03\n`,
    start,
    pools.map(({ id }) => id),
  )
  const price = (at: number) => tracedPrice(trace, spot.id, at)
  expect([-hour, 0, 59_999, 60_000, hour, 9 * hour].map((after) => price(start + after))).toEqual([
    10_000, 10_000, 10_000, 20_000, 30_000, 30_000,
  ])
  expect(tracedPrice(trace, 'north-1/north-1b/small/spot', start)).toBeNull()
})

test('a trace that is wrong is refused by its line', () => {
  const refusal =
    (...lines: string[]) =>
    () =>
      parseTrace(lines.join('\n'), start, [spot.id])
  expect(refusal('when,what')).toThrow('begins with the line "time,pool,price"')
  expect(refusal('time,pool,price', '', `soon,${spot.id},1`)).toThrow('line 3: "soon" is no time')
  expect(refusal('time,pool,price', `+,${spot.id},1`)).toThrow('line 2: "+" is no time')
  expect(refusal('time,pool,price', '+1,nowhere,1')).toThrow('line 2: there is no pool "nowhere"')
  expect(refusal('time,pool,price', `+1,${spot.id},-1`)).toThrow('line 2: "-1" is no price')
  expect(refusal('time,pool,price', `+1,${spot.id}`)).toThrow('line 2: three fields')
  expect(refusal('time,pool,price', `+1,${spot.id},1,2`)).toThrow('line 2: three fields')
})
