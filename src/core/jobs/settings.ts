import { didYouMean } from '../text.ts'
import { day, hour, minute, second, type Duration } from '../time/index.ts'

/** The settings that a job runs under, effective values only. */
export interface JobSettings {
  readonly ttl: Duration | 'off'
  readonly ttlKeep: Duration
  readonly spot: boolean
  readonly market: 'any' | 'on-demand' | 'spot'
  readonly leaseLength: Duration | 'detached'
  readonly leaseRenew: Duration
  readonly leaseMargin: Duration
  readonly moveHold: Duration
  readonly checkpointKeep: Duration
  readonly safePointWait: Duration
  readonly stopGrace: Duration
  readonly startTimeout: Duration
  readonly restoreTimeout: Duration
  readonly checkin: Duration
  readonly retryQueued: Duration
  readonly retryRefused: Duration
  readonly bitExact: boolean
}

const units = { ms: 1, s: second, m: minute, h: hour, d: day } as const

/** One key of the settings table: its field, default, and how a text becomes its value (throws with what was expected). */
interface Setting<Field extends keyof JobSettings> {
  readonly field: Field
  readonly builtIn: JobSettings[Field]
  readonly parse: (text: string) => JobSettings[Field]
  readonly expects: string
}

const key = <Field extends keyof JobSettings>(
  field: Field,
  builtIn: JobSettings[Field],
  expects: string,
  parse: (text: string) => JobSettings[Field],
): Setting<Field> => ({ field, builtIn, expects, parse })

const duration = <Field extends keyof JobSettings>(
  field: Field,
  builtIn: Duration,
  min: Duration,
  max: Duration,
  or?: 'off' | 'detached',
) =>
  key(
    field,
    builtIn as JobSettings[Field],
    `a duration from ${shortDuration(min)} to ${shortDuration(max)}${or ? `, or ${or}` : ''}`,
    (text) => (or !== undefined && text === or ? or : within(parseDuration(text), min, max)) as JobSettings[Field],
  )

const onOff = <Field extends keyof JobSettings>(field: Field, builtIn: boolean) =>
  key(
    field,
    builtIn as JobSettings[Field],
    'on or off',
    (text) => (oneOf(['on', 'off'], text) === 'on') as JobSettings[Field],
  )

/** Every key that a job's settings know, with its range. */
export const settingsTable = {
  ttl: duration('ttl', 72 * hour, minute, 365 * day, 'off'),
  'ttl.keep': duration('ttlKeep', 7 * day, hour, 365 * day),
  spot: onOff('spot', true),
  market: key('market', 'any', 'any, on-demand or spot', (text) => oneOf(['any', 'on-demand', 'spot'] as const, text)),
  'lease.length': duration('leaseLength', hour, 10 * minute, 24 * hour, 'detached'),
  'lease.renew': duration('leaseRenew', 10 * minute, minute, 8 * hour),
  'lease.margin': duration('leaseMargin', minute, 10 * second, hour),
  'move.hold': duration('moveHold', 10 * minute, minute, 6 * hour),
  'checkpoint.keep': duration('checkpointKeep', 3 * day, hour, 365 * day),
  'safe_point.wait': duration('safePointWait', 10 * minute, second, 6 * hour),
  'stop.grace': duration('stopGrace', 30 * second, 0, hour),
  'start.timeout': duration('startTimeout', 10 * minute, second, 6 * hour),
  'restore.timeout': duration('restoreTimeout', 5 * minute, second, 6 * hour),
  checkin: duration('checkin', 15 * minute, 2 * minute, hour),
  'retry.queued': duration('retryQueued', 10 * minute, 5 * second, hour),
  'retry.refused': duration('retryRefused', 10 * minute, minute, day),
  bit_exact: onOff('bitExact', false),
} as const

export type SettingKey = keyof typeof settingsTable
export const settingKeys = Object.keys(settingsTable) as readonly SettingKey[]

export const builtIn: JobSettings = Object.fromEntries(
  Object.values(settingsTable).map(({ field, builtIn: value }) => [field, value]),
) as unknown as JobSettings

/** A text that is not a setting, or not in its range: says which key, what was given, what is expected. */
export class SettingError extends Error {
  readonly key: string
  constructor(key: string, message: string) {
    super(message)
    this.name = 'SettingError'
    this.key = key
  }
}

/**
 * Effective settings from texts as people write them, over the defaults.
 *
 * @throws SettingError naming the first key that is unknown (with the nearest known one), of a wrong unit, or out of range (J-RUN-4)
 */
export function settingsFrom(texts: Readonly<Record<string, string>>, over: JobSettings = builtIn): JobSettings {
  const set: Record<string, unknown> = { ...over }
  for (const [name, text] of Object.entries(texts)) {
    const setting = Object.hasOwn(settingsTable, name) ? settingsTable[name as SettingKey] : undefined
    if (!setting) throw new SettingError(name, `there is no setting ${name}${didYouMean(name, settingKeys)}`)
    try {
      set[setting.field] = setting.parse(text)
    } catch (error) {
      throw new SettingError(
        name,
        `${name} is ${JSON.stringify(text)}, expected ${setting.expects}${error instanceof RangeError ? ` (${error.message})` : ''}`,
      )
    }
  }
  const settings = set as unknown as JobSettings
  if (settings.leaseLength !== 'detached' && settings.leaseRenew > settings.leaseLength / 3)
    throw new SettingError(
      'lease.renew',
      `lease.renew is ${shortDuration(settings.leaseRenew)}, at most a third of lease.length (${shortDuration(settings.leaseLength)})`,
    )
  return settings
}

/** `30s 15m 72h 7d`, in ms. @throws RangeError */
export function parseDuration(text: string): Duration {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text)
  if (!match) throw new RangeError('durations are written as 30s, 15m, 72h or 7d')
  return Math.round(Number(match[1]) * units[match[2] as keyof typeof units])
}

/** The shortest way to write a length: `72h`, `90s`. */
export function shortDuration(ms: Duration): string {
  const [unit, length] = (Object.entries(units)
    .toReversed()
    .find(([, l]) => ms >= l && ms % l === 0) ?? ['ms', 1]) as [string, number]
  return `${ms / length}${unit}`
}

function within(value: number, min: number, max: number): number {
  if (value < min) throw new RangeError(`at least ${shortDuration(min)}`)
  if (value > max) throw new RangeError(`at most ${shortDuration(max)}`)
  return value
}

function oneOf<const T extends string>(known: readonly T[], text: string): T {
  const found = known.find((one) => one === text)
  if (found === undefined) throw new RangeError(`one of ${known.join(', ')}`)
  return found
}
