import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { messageOf, StoreError } from '../errors.ts'
import type { Raw } from '../rows.ts'
import type { Statement } from '../statements.ts'

/** `PRTL`: says in the file's own header that it is Portal's. */
const applicationId = 0x5052544c
/** Up to this size a file is looked through page by page when it is opened (25 ms); damage in a larger one shows when it is met. */
const checkedUpToBytes = 32 * 1024 ** 2
/** How long another process's transaction is waited for; the event loop stands still meanwhile. */
const busyTimeoutMs = 5000

/** The one path to a database: every statement goes through `run`, prepared once. */
export interface Connection {
  readonly file: string
  run(statement: Statement): readonly Raw[]
  /** Executes what has no parameters and gives no rows. */
  exec(sql: string): void
  inTransaction(): boolean
  close(): void
}

/**
 * Opens a file with every commit made durable before it is told.
 *
 * @param file an absolute path, or `:memory:`
 * @throws StoreError `store_damaged`, `store_foreign`, `store_not_durable`, `store_busy`
 */
export function connect(file: string): Connection {
  return translated(file, () => {
    const db = new DatabaseSync(file, { timeout: busyTimeoutMs, enableForeignKeyConstraints: true })
    try {
      db.exec('pragma trusted_schema = off')
      mustBeOurs(file, db)
      mustBeWhole(file, db)
      const { journal_mode: journal } = db.prepare('pragma journal_mode = wal').get() as { journal_mode: string }
      db.exec('pragma synchronous = full')
      const { synchronous } = db.prepare('pragma synchronous').get() as { synchronous: number }
      if (file !== ':memory:' && (journal !== 'wal' || synchronous !== 2))
        throw new StoreError(
          'store_not_durable',
          `${file}: SQLite answers journal_mode=${journal}, synchronous=${synchronous} instead of wal and 2: ` +
            'what is written there would not be safe. Put the data directory on a local disk (PORTAL_HOME).',
        )
      db.exec(`pragma application_id = ${applicationId}`)
      db.exec('pragma cache_size = -32000; pragma journal_size_limit = 67108864')
      return over(file, db)
    } catch (error) {
      db.close()
      throw error
    }
  })
}

/** Looked at before anything is set: another program's file stays as it is. */
function mustBeOurs(file: string, db: DatabaseSync): void {
  const { id } = db.prepare('select application_id as id from pragma_application_id').get() as { id: number }
  const { tables } = db.prepare('select count(*) as tables from sqlite_schema').get() as { tables: number }
  if (id !== applicationId && (id !== 0 || tables > 0))
    throw new StoreError(
      'store_foreign',
      `${file} is a database of another program. Nothing was changed; choose another place for Portal's.`,
    )
}

function mustBeWhole(file: string, db: DatabaseSync): void {
  const { bytes } = db
    .prepare('select page_count * page_size as bytes from pragma_page_count, pragma_page_size')
    .get() as { bytes: number }
  if (bytes > checkedUpToBytes) return
  const { quick_check: found } = db.prepare('pragma quick_check(1)').get() as { quick_check: string }
  if (found !== 'ok') throw damaged(file, found)
}

function over(file: string, db: DatabaseSync): Connection {
  const cache = new Map<string, { readonly statement: StatementSync; readonly givesRows: boolean }>()
  const preparedOnce = (sql: string) => {
    let entry = cache.get(sql)
    if (entry === undefined) {
      const statement = db.prepare(sql)
      entry = { statement, givesRows: statement.columns().length > 0 }
      cache.set(sql, entry)
    }
    return entry
  }
  return {
    file,
    run: ({ sql, parameters }) =>
      translated(file, () => {
        const { statement, givesRows } = preparedOnce(sql)
        if (givesRows) return statement.all(...parameters)
        statement.run(...parameters)
        return []
      }),
    exec: (sql) => translated(file, () => db.exec(sql)),
    inTransaction: () => db.isTransaction,
    close: () => {
      cache.clear()
      if (db.isOpen) db.close()
    },
  }
}

const sqliteCode = (error: unknown): number | null =>
  error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode & 0xff : null

/** The disk failed while it was written: what of it is there cannot be told. */
export const isDiskFailure = (error: unknown): boolean =>
  error instanceof StoreError && sqliteCode(error.cause) === sqlite.ioError

const sqlite = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  notADatabase: 26,
} as const

function translated<Result>(file: string, act: () => Result): Result {
  try {
    return act()
  } catch (error) {
    if (error instanceof StoreError) throw error
    const message = messageOf(error)
    if (error instanceof Error && /database is not open|statement has been finalized/.test(message))
      throw new StoreError('store_closed', `${file} was closed already.`, error)
    switch (sqliteCode(error)) {
      case null:
        throw error
      case sqlite.busy:
      case sqlite.locked:
        throw new StoreError(
          'store_busy',
          `${file} was kept locked by another process for ${busyTimeoutMs / 1000} s. ` +
            'Nothing was written; end the program that holds it (a shell of sqlite3, a backup), and try again.',
          error,
        )
      case sqlite.full:
        throw new StoreError(
          'store_full',
          `No space is left for ${file}. Nothing was written; make room on its disk.`,
          error,
        )
      case sqlite.corrupt:
      case sqlite.notADatabase:
        throw damaged(file, message, error)
      default:
        throw new StoreError('store_failed', `${file}: ${message}`, error)
    }
  }
}

const damaged = (file: string, what: string, cause?: unknown): StoreError =>
  new StoreError(
    'store_damaged',
    `${file} is damaged (${what}). Nothing was changed. Restore a copy of it together with its -wal file, ` +
      `or move it away and see what \`sqlite3 ${file} .recover\` still finds.`,
    cause,
  )
