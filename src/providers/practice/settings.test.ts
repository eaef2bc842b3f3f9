import { expect, test } from 'vitest'
import { practiceSettings } from './settings.ts'

test('what is not said is built in', () => {
  expect(practiceSettings({})).toMatchObject({ seed: 1, trace: null, currency: 'USD', interruptionsPerHour: 0 })
  expect(practiceSettings({ seed: 4 })).toEqual({ ...practiceSettings({}), seed: 4 })
})

test('what is wrong is refused by its key, with what it wants', () => {
  const refusals: readonly [Record<string, unknown>, string][] = [
    [{ seeds: 1 }, 'there is no setting seeds; did you mean seed?'],
    [{ seed: 1.5 }, 'seed is 1.5; it wants an integer'],
    [{ trace: 'prices.csv' }, 'trace is "prices.csv"; it wants a file\'s whole path'],
    [{ currency: 'dollars' }, 'currency is "dollars"; it wants three letters'],
    [{ interruptionsPerHour: -1 }, 'interruptionsPerHour is -1'],
    [{ bootDelay: Number.NaN }, 'bootDelay is null'],
    [{ toString: 1 }, 'there is no setting toString'],
  ]
  for (const [given, message] of refusals) expect(() => practiceSettings(given)).toThrow(message)
})
