import { hour, type Duration } from '../time/index.ts'

/** An amount in millionths of one currency, an integer. Sums never mix currencies. */
export interface Money {
  readonly micros: number
  readonly currency: string
}

/** A price for an hour of use. */
export type HourlyPrice = Money

export const money = (amount: number, currency = 'USD'): Money => ({ micros: Math.round(amount * 1e6), currency })

/** What a length of time costs, rounded up: an estimate never falls below what is charged. */
export const costOf = (price: HourlyPrice, time: Duration): Money => ({
  micros: Math.ceil((price.micros * Math.max(0, time)) / hour),
  currency: price.currency,
})

export const plus = (a: Money, b: Money): Money => {
  if (a.currency !== b.currency && a.micros !== 0 && b.micros !== 0)
    throw new RangeError(`amounts of two currencies cannot be added: ${a.currency} and ${b.currency}`)
  return { micros: a.micros + b.micros, currency: a.micros === 0 ? b.currency : a.currency }
}
