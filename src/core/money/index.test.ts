import { expect, test } from 'vitest'
import { hour, minute } from '../time/index.ts'
import { costOf, money, plus } from './index.ts'

test('a cost is rounded up, never down', () => {
  expect(costOf(money(1), hour)).toEqual(money(1))
  expect(costOf({ micros: 1, currency: 'USD' }, minute)).toEqual({ micros: 1, currency: 'USD' })
})

test('two currencies are never added', () => {
  expect(() => plus(money(1, 'USD'), money(1, 'EUR'))).toThrow('USD and EUR')
  expect(plus(money(0, 'USD'), money(1, 'EUR'))).toEqual(money(1, 'EUR'))
})
