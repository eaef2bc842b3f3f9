import { describe, expect, test } from 'vitest'
import { money } from '../money/index.ts'
import { hour, minute } from '../time/index.ts'
import { builtIn } from './settings.ts'
import { leaseReckoned, ranFor, spent, spentOn, worstCase } from './spending.ts'
import { aJob, anAttempt, anOffer, now } from './testing.ts'

const offer = anOffer({ price: money(1) })

describe('J-BUDGET-2 what a stay has cost', () => {
  test.each([
    ['it was never started', anAttempt(1, { offer, startedAt: null }), 0],
    ['it runs since two hours', anAttempt(1, { offer, startedAt: now - 2 * hour }), 2],
    ['it is gone: the time until then', anAttempt(1, { offer, startedAt: now - 2 * hour, goneAt: now - hour }), 1],
    [
      'it was let go and is not proven gone: it still costs',
      anAttempt(1, { offer, state: 'ending', startedAt: now - 2 * hour, endingAt: now - hour }),
      2,
    ],
    ['it was settled: what was settled', anAttempt(1, { offer, state: 'gone', spent: money(0.5) }), 0.5],
    ['it was started in the future, by another clock', anAttempt(1, { offer, startedAt: now + hour }), 0],
  ] as const)('%s', (_, attempt, expected) => {
    expect(spentOn(attempt, now)).toEqual(money(expected))
  })

  test('over all stays, also where two cost at once', () => {
    const stays = [
      anAttempt(1, { offer, spent: money(0.25) }),
      anAttempt(2, { offer, startedAt: now - hour }),
      anAttempt(3, { offer, startedAt: now - hour }),
    ]
    expect(spent(stays, now)).toEqual(money(2.25))
    expect(spent([], now)).toEqual(money(0))
  })
})

test('J-TTL-1 how long machines have run it: from when it could execute, until it was given up', () => {
  const job = aJob()
    .with({ ttlFrom: now - 10 * hour })
    .build().job
  const stays = [
    anAttempt(1, { ranFrom: now - 9 * hour, ranUntil: now - 7 * hour }),
    anAttempt(2, { ranFrom: null, boundAt: now - 5 * hour }),
    anAttempt(3, { ranFrom: now - hour }),
  ]
  expect(ranFor(job, stays, now)).toBe(3 * hour)
  expect(ranFor({ ...job, ttlFrom: now - 8 * hour }, stays, now)).toBe(2 * hour)
  expect(ranFor({ ...job, ttlFrom: now }, stays, now)).toBe(0)
})

test('J-LEASE-2 the machine’s own hard stop is never later than the control plane reckons, though its clock be 1% slow', () => {
  for (const length of [10 * minute, hour, 24 * hour])
    for (const leaseMargin of [10_000, minute, hour])
      expect(leaseReckoned(length, { ...builtIn, leaseMargin })).toBeGreaterThanOrEqual(length * 1.01 + leaseMargin)
})

test('J-CAP-1 the worst case is the time so far and all of it up to the hard stop, rounded up', () => {
  expect(worstCase({ offer, startedAt: now - hour, intendedAt: now - 2 * hour }, now, hour)).toEqual(money(2))
  expect(worstCase({ offer, startedAt: null, intendedAt: now }, now, hour)).toEqual(money(1))
  expect(
    worstCase({ offer: anOffer({ price: { micros: 1, currency: 'USD' } }), startedAt: now, intendedAt: now }, now, 1),
  ).toEqual({ micros: 1, currency: 'USD' })
})
