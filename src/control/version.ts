import { readFileSync } from 'node:fs'

/** Put in by the bundler; from source it is read from the package. */
declare const PORTAL_VERSION: string | undefined

export const version = (): string =>
  typeof PORTAL_VERSION === 'string'
    ? PORTAL_VERSION
    : (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version
