import type { Money } from '../core/money/index.ts'

/** Millionths of a currency → the decimal string of the wire: `{ micros: 12_500_000, currency: 'USD' }` → `12.50 USD`'s parts. */
export function moneyView({ micros, currency }: Money): { amount: string; currency: string } {
  const sign = micros < 0 ? '-' : ''
  const whole = Math.floor(Math.abs(micros) / 1e6)
  const parts = String(Math.abs(micros) % 1e6).padStart(6, '0')
  // at least two places, as money is read; no more zeros than that
  return { amount: `${sign}${whole}.${parts.slice(0, 2)}${parts.slice(2).replace(/0+$/, '')}`, currency }
}

/** The way back. Throws a RangeError for what is no amount, or is finer than a millionth. */
export function moneyOf({ amount, currency }: { readonly amount: string; readonly currency: string }): Money {
  const match = /^(-?)(\d{1,9})(?:\.(\d{1,6}))?$/.exec(amount)
  if (!match) throw new RangeError(`${JSON.stringify(amount)} is not an amount with at most six decimal places`)
  const [, sign, whole, parts = ''] = match
  const micros = Number(whole) * 1e6 + Number(parts.padEnd(6, '0'))
  return { micros: sign ? -micros : micros, currency }
}
