import type { Instant } from '../core/time/index.ts'

export type StoreErrorCode =
  | 'store_newer'
  | 'store_damaged'
  | 'store_foreign'
  | 'store_network_file_system'
  | 'store_not_durable'
  | 'store_unreachable'
  | 'store_busy'
  | 'store_full'
  | 'store_failed'
  | 'store_closed'
  | 'store_locked'

/** What went wrong with the store, where, and what to do. Whenever `apply` throws one, nothing was applied. */
export class StoreError extends Error {
  override readonly name: string = 'StoreError'
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** Who holds a lock; null in `holder`: it has only just been taken. */
export interface Holder {
  readonly pid: number
  readonly since: Instant
}

/** Another process is at work on a data directory (`store_locked`). */
export class LockedError extends StoreError {
  readonly holder: Holder | null

  constructor(message: string, holder: Holder | null) {
    super('store_locked', message)
    this.holder = holder
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
