import { assert, integer, property } from 'fast-check'
import { expect, test } from 'vitest'
import { moneyOf, moneyView } from './money.ts'

const shown = (micros: number) => moneyView({ micros, currency: 'USD' }).amount

test('money is shown with two places, or as many as it has', () => {
  expect([0, 12_500_000, 1, -1_234_500, 999_999, -5].map(shown)).toEqual([
    '0.00',
    '12.50',
    '0.000001',
    '-1.2345',
    '0.999999',
    '-0.000005',
  ])
})

test('money comes back as it was, to the millionth', () => {
  const micros = integer({ min: -9_000_000_000_000, max: 9_000_000_000_000 })
  assert(property(micros, (micros) => moneyOf(moneyView({ micros, currency: 'EUR' })).micros === micros))
})

test.for(['', '1.', '.5', '1e3', '1.0000001', ' 1', '1,5', 'NaN', '1234567890'])('%j is no amount', (amount) => {
  expect(() => moneyOf({ amount, currency: 'USD' })).toThrow(RangeError)
})
