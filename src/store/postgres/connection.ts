import { DatabaseError, Pool, types as parsers, type ClientBase, type CustomTypesConfig, type PoolClient } from 'pg'
import { messageOf, StoreError } from '../errors.ts'
import type { Raw } from '../rows.ts'
import type { Statement } from '../statements.ts'

const connectTimeoutMs = 10_000
/** A row that another transaction holds is waited for this long. */
const lockTimeoutMs = 10_000
/** The server itself ends a transaction whose client went silent: a dead control plane holds no row for long. */
const idleInTransactionMs = 15_000
/** No answer at all: the connection is given up. */
const answerTimeoutMs = 30_000
const connections = 8

const integers = 20
const json = 114
/** Counters and instants are numbers here, documents stay text until they are wanted. */
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === integers ? Number : oid === json ? String : parsers.getTypeParser(oid, format),
} as CustomTypesConfig

/** @throws StoreError `store_not_durable` for a connection whose commits could be lost, from whichever setting that comes */
const mustBeDurable =
  (place: string) =>
  async (client: ClientBase): Promise<void> => {
    const { rows } = await client.query(
      "select current_setting('synchronous_commit') as commits, current_setting('server_encoding') as encoding",
    )
    const { commits, encoding } = rows[0] as { commits: string; encoding: string }
    if (commits === 'off')
      throw new StoreError(
        'store_not_durable',
        `${place} has synchronous_commit=off: a commit that was told could be lost in a crash. ` +
          'Set it to on for this database (alter database … set synchronous_commit = on), then start again.',
      )
    if (encoding !== 'UTF8')
      throw new StoreError(
        'store_failed',
        `${place} is encoded in ${encoding}. Make a database with encoding UTF8 for Portal.`,
      )
  }

/** Where a connection string points, without its password. */
export function placeOf(url: string): string {
  try {
    const { hostname, port, pathname, searchParams } = new URL(url)
    const host = hostname === '' ? (searchParams.get('host') ?? 'localhost') : hostname
    return `PostgreSQL database ${pathname.slice(1) || '(default)'} at ${host}${port === '' ? '' : `:${port}`}`
  } catch {
    throw new StoreError(
      'store_failed',
      'The connection string is not a URL like postgresql://user@host:5432/database.',
    )
  }
}

export function poolFor(url: string, place: string): Pool {
  const pool = new Pool({
    connectionString: url,
    application_name: 'portal',
    max: connections,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: answerTimeoutMs,
    lock_timeout: lockTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionMs,
    keepAlive: true,
    types,
    onConnect: mustBeDurable(place),
  })
  // an idle connection that breaks is simply replaced at its next use; unheard, it would end the process
  pool.on('error', () => {})
  // one in use that breaks fails its query, and says so a second time here
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

export const execute = async (client: Pool | PoolClient, { sql, parameters }: Statement): Promise<readonly Raw[]> =>
  ((await client.query(sql, [...parameters])) as { rows: Raw[] }).rows

/** The five characters of SQLSTATE; null: the server did not speak, so the connection is what failed. */
export const sqlState = (error: unknown): string | null =>
  error instanceof DatabaseError && error.code !== undefined ? error.code : null

const sayings: Record<string, string> = {
  '25006':
    'it takes no writes (a standby, or default_transaction_read_only). Name the primary in the connection string',
  '42501': 'this user may not do that. Make it the owner of the database',
  '28P01': 'the password is wrong. Check the connection string',
  '28000': 'this user may not connect. Check the connection string and pg_hba.conf',
  '3D000': 'there is no such database. Make it with createdb',
  '53100': 'its disk is full. Make room there',
  '53300': 'it has no connection left. Raise max_connections, or end other clients',
  '55P03': `a row was kept locked by another client for ${lockTimeoutMs / 1000} s. Nothing was written; try again`,
}

export function translated(place: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const state = sqlState(error)
  const message = messageOf(error)
  if (state === null && /after calling end on the pool/.test(message))
    return new StoreError('store_closed', `${place} was closed already.`, error)
  if (state === null)
    return new StoreError(
      'store_unreachable',
      `${place} cannot be reached: ${message || 'no answer'}. See that it runs and that the connection string is right.`,
      error,
    )
  const code = state === '55P03' ? 'store_busy' : state === '53100' ? 'store_full' : 'store_failed'
  const saying = sayings[state]
  return new StoreError(code, `${place}: ${saying === undefined ? message : `${saying} (${message})`}.`, error)
}
