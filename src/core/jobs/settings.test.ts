import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { day, hour, minute, second } from '../time/index.ts'
import {
  builtIn,
  parseDuration,
  SettingError,
  settingKeys,
  settingsFrom,
  settingsTable,
  shortDuration,
} from './settings.ts'

const refused = (texts: Record<string, string>): SettingError => {
  try {
    settingsFrom(texts)
  } catch (error) {
    if (error instanceof SettingError) return error
    throw error
  }
  throw new Error(`${JSON.stringify(texts)} was taken`)
}

describe('J-RUN-4 settings', () => {
  test('nothing set: the defaults of the table', () => {
    expect(settingsFrom({})).toEqual(builtIn)
    expect(builtIn).toMatchObject({
      ttl: 72 * hour,
      ttlKeep: 7 * day,
      spot: true,
      market: 'any',
      leaseLength: hour,
      leaseRenew: 10 * minute,
      checkpointKeep: 3 * day,
      safePointWait: 10 * minute,
      stopGrace: 30 * second,
      checkin: 15 * minute,
      bitExact: false,
    })
  })

  test.each([
    ['ttl', '1m', '365d', '59s', '366d'],
    ['ttl.keep', '1h', '365d', '59m', '366d'],
    ['lease.margin', '10s', '1h', '9s', '61m'],
    ['move.hold', '1m', '6h', '59s', '7h'],
    ['checkpoint.keep', '1h', '365d', '59m', '366d'],
    ['safe_point.wait', '1s', '6h', '999ms', '7h'],
    ['start.timeout', '1s', '6h', '999ms', '7h'],
    ['restore.timeout', '1s', '6h', '999ms', '7h'],
    ['checkin', '2m', '1h', '119s', '61m'],
    ['retry.queued', '5s', '1h', '4s', '61m'],
    ['retry.refused', '1m', '24h', '59s', '25h'],
  ] as const)('%s is from %s to %s', (key, min, max, under, over) => {
    const { field } = settingsTable[key]
    expect(settingsFrom({ [key]: min })[field]).toBe(parseDuration(min))
    expect(settingsFrom({ [key]: max })[field]).toBe(parseDuration(max))
    expect(refused({ [key]: under }).message).toContain('at least')
    expect(refused({ [key]: over }).message).toContain('at most')
  })

  test.each([
    ['lease.length', '10m', { leaseLength: 10 * minute }, { 'lease.renew': '1m' }],
    ['lease.length', '24h', { leaseLength: 24 * hour }, {}],
    ['lease.length', 'detached', { leaseLength: 'detached' }, {}],
    ['lease.renew', '20m', { leaseRenew: 20 * minute }, {}],
    ['ttl', 'off', { ttl: 'off' }, {}],
    ['spot', 'off', { spot: false }, {}],
    ['bit_exact', 'on', { bitExact: true }, {}],
    ['market', 'on-demand', { market: 'on-demand' }, {}],
    ['stop.grace', '0s', { stopGrace: 0 }, {}],
    ['start.timeout', '1.5h', { startTimeout: 90 * minute }, {}],
  ] as const)('%s may be %s', (key, text, expected, others) => {
    expect(settingsFrom({ ...others, [key]: text })).toMatchObject(expected)
  })

  test.each([
    [
      'an unknown key names the nearest',
      { 'checkpoint.kep': '1d' },
      'there is no setting checkpoint.kep; did you mean checkpoint.keep?',
    ],
    ['an unknown key like nothing', { gpu: '1' }, 'there is no setting gpu'],
    ['a name that objects have', { constructor: '1' }, 'there is no setting constructor'],
    ['another one', { __proto__x: '1' }, 'there is no setting __proto__x'],
    [
      'no unit',
      { ttl: '72' },
      'ttl is "72", expected a duration from 1m to 365d, or off (durations are written as 30s, 15m, 72h or 7d)',
    ],
    ['a wrong unit', { ttl: '3w' }, 'durations are written as'],
    ['a sign', { ttl: '-1h' }, 'durations are written as'],
    ['a space', { ttl: '1 h' }, 'durations are written as'],
    ['nothing', { ttl: '' }, 'ttl is "", expected'],
    ['more digits than time has', { ttl: '9999999999d' }, 'durations are written as'],
    ['off where it cannot be', { 'ttl.keep': 'off' }, 'ttl.keep is "off", expected a duration from 1h to 365d'],
    ['a switch that is neither', { spot: 'yes' }, 'spot is "yes", expected on or off (one of on, off)'],
    [
      'J-NEVER-5 a lease cannot be turned off',
      { 'lease.length': 'off' },
      'expected a duration from 10m to 1d, or detached',
    ],
    ['renewed too seldom', { 'lease.renew': '21m' }, 'lease.renew is 21m, at most a third of lease.length (1h)'],
    [
      'a length too short for the renewal that stands',
      { 'lease.length': '20m' },
      'lease.renew is 10m, at most a third of lease.length (20m)',
    ],
  ])('%s is refused', (_, texts, message) => {
    expect(refused(texts as Record<string, string>).message).toContain(message)
  })

  test('what is set stays when a resume sets something else', () => {
    const first = settingsFrom({ ttl: '5h', spot: 'off' })
    expect(settingsFrom({ ttl: '6h' }, first)).toEqual({ ...builtIn, ttl: 6 * hour, spot: false })
  })

  test('every default is within its own range', () => {
    const written = (value: unknown): string =>
      typeof value === 'number'
        ? shortDuration(value)
        : typeof value === 'boolean'
          ? value
            ? 'on'
            : 'off'
          : String(value)
    for (const key of settingKeys) {
      const { field, builtIn: value } = settingsTable[key]
      expect(settingsFrom({ [key]: written(value) })[field]).toBe(value)
    }
  })

  test('a length is read back as it was written, whatever its unit', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.nat(999_999_999),
          fc.nat(365 * 24 * 3600).map((s) => s * second),
        ),
        (ms) => {
          expect(parseDuration(shortDuration(ms))).toBe(ms)
        },
      ),
    )
  })
})
