import { StoreError } from './errors.ts'
import type { Store } from './port.ts'

export { LockedError, StoreError } from './errors.ts'
export { takeLock } from './lock.ts'
export type * from './port.ts'

/**
 * Opens what Portal remembers, and brings it up to this version's schema.
 *
 * @param where a file's path (SQLite), `:memory:` (SQLite, gone when closed), or `postgresql://…`
 * @throws StoreError with a code: written by a newer Portal, damaged, on a network file system, not durable, unreachable
 */
export async function openStore(where: string, now: () => number = Date.now): Promise<Store> {
  if (/^postgres(ql)?:\/\//.test(where)) return (await import('./postgres/index.ts')).openPostgres(where, now)
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(where))
    throw new StoreError(
      'store_failed',
      `A store is a file's path or postgresql://…, not ${where.slice(0, where.indexOf('://') + 3)}…`,
    )
  return (await import('./sqlite/index.ts')).openSqlite(where, now)
}
