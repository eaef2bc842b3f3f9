import { isAbsolute } from 'node:path'
import { minute } from '../../core/time/index.ts'
import { didYouMean } from '../../core/text.ts'
import type { PracticeSettings } from './api.ts'

const builtIn: PracticeSettings = {
  seed: 1,
  trace: null,
  currency: 'USD',
  bootDelay: 300,
  interruptionsPerHour: 0,
  keepFolders: 5 * minute,
  idleExit: 10 * minute,
}

const checks: {
  readonly [K in keyof PracticeSettings]: { readonly fits: (value: unknown) => boolean; readonly wants: string }
} = {
  seed: { fits: Number.isSafeInteger, wants: 'an integer' },
  trace: {
    fits: (value) => value === null || (typeof value === 'string' && isAbsolute(value)),
    wants: "a file's whole path",
  },
  currency: { fits: (value) => typeof value === 'string' && /^[A-Z]{3}$/.test(value), wants: 'three letters, as USD' },
  bootDelay: { fits: within(0, 10 * minute), wants: 'ms, at most ten minutes' },
  interruptionsPerHour: { fits: within(0, 12), wants: 'a number from 0 to 12' },
  keepFolders: { fits: within(0, 10_000 * minute), wants: 'ms, at most a week' },
  idleExit: { fits: within(100, 10_000 * minute), wants: 'ms, at least 100 and at most a week' },
}

/** The settings of a practice connection, over the built-in ones. Throws a RangeError that names the key. */
export function practiceSettings(given: Readonly<Record<string, unknown>>): PracticeSettings {
  for (const [key, value] of Object.entries(given)) {
    if (!isKey(key)) throw new RangeError(`practice: there is no setting ${key}${didYouMean(key, Object.keys(checks))}`)
    if (!checks[key].fits(value))
      throw new RangeError(`practice: ${key} is ${JSON.stringify(value)}; it wants ${checks[key].wants}`)
  }
  return { ...builtIn, ...given }
}

const isKey = (key: string): key is keyof PracticeSettings => Object.hasOwn(checks, key)

function within(least: number, most: number): (value: unknown) => boolean {
  return (value) => typeof value === 'number' && value >= least && value <= most
}
