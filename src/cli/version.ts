import { readFileSync } from 'node:fs'

declare const PORTAL_VERSION: string | undefined

/** This Portal's version: put in by the build, read from package.json where the sources run. */
export const version: string =
  typeof PORTAL_VERSION === 'string'
    ? PORTAL_VERSION
    : (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version

/** Whether a version comes before another (`1.2.3-rc.1` before `1.2.3`); what is no version comes before nothing. */
export const isOlder = (one: string, other: string): boolean => {
  const [a, b] = [parts(one), parts(other)]
  if (!a || !b) return false
  for (let i = 0; i < 3; i++) {
    const difference = (a.numbers[i] as number) - (b.numbers[i] as number)
    if (difference !== 0) return difference < 0
  }
  if (a.pre === b.pre) return false
  if (a.pre === '' || b.pre === '') return a.pre !== ''
  return a.pre.localeCompare(b.pre, 'en', { numeric: true }) < 0
}

const parts = (version: string): { readonly numbers: readonly number[]; readonly pre: string } | null => {
  const match = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([\w.-]+))?(?:\+|$)/.exec(version)
  return match && { numbers: match.slice(1, 4).map(Number), pre: match[4] ?? '' }
}
