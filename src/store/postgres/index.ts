import { DummyDriver, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, type Dialect } from 'kysely'
import { setTimeout as sleep } from 'node:timers/promises'
import { applying, mustBeStorable } from '../apply.ts'
import { messageOf, StoreError } from '../errors.ts'
import { pending, versionTable } from '../migrations.ts'
import { reads } from '../reads.ts'
import { statementsFor, type Statements } from '../statements.ts'
import { execute, placeOf, poolFor, sqlState, translated } from './connection.ts'
import type { Applied, Store, Transaction } from '../port.ts'
import type { Pool, PoolClient } from 'pg'

const dialect: Dialect = {
  createAdapter: () => new PostgresAdapter(),
  createDriver: () => new DummyDriver(),
  createIntrospector: (db) => new PostgresIntrospector(db),
  createQueryCompiler: () => new PostgresQueryCompiler(),
}

/** How often a transaction that lost to another one is begun again, and one whose connection broke before its commit. */
const triesAfterConflict = 20
const triesAfterBreak = 3
/** Any number: who migrates holds it. */
const migrationLock = 0x5052544c

/**
 * The store that several machines can reach.
 *
 * @param url `postgresql://user@host:port/database`
 * @throws StoreError `store_newer`, `store_not_durable`, `store_unreachable`, `store_failed`
 */
export async function openPostgres(url: string, now: () => number): Promise<Store> {
  const place = placeOf(url)
  const pool = poolFor(url, place)
  const guarded = async <Result>(act: () => Promise<Result>): Promise<Result> => {
    try {
      return await act()
    } catch (error) {
      throw error instanceof TypeError ? error : translated(place, error)
    }
  }
  try {
    await guarded(() => migrate(pool, place, now()))
  } catch (error) {
    await pool.end()
    throw error
  }
  const statements = statementsFor(dialect, { rowLocks: true })
  return {
    ...reads(statements, (statement) => guarded(() => onceMore(() => execute(pool, statement)))),
    apply: (transaction) => guarded(() => apply(pool, statements, transaction)),
    close: async () => {
      if (!pool.ended && !pool.ending) await pool.end()
    },
  }
}

async function migrate(pool: Pool, place: string, now: number): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query(`select pg_advisory_xact_lock(${migrationLock})`)
    await client.query(versionTable.postgres)
    const { rows } = await client.query('select coalesce(max(number), 0) as number from schema_version')
    for (const sql of pending((rows[0] as { number: number }).number, 'postgres', place, now)) await client.query(sql)
    await client.query('commit')
    client.release()
  } catch (error) {
    // its transaction ends with it
    client.release(true)
    throw error
  }
}

/** A read may be asked again on another connection: it changed nothing. */
async function onceMore<Result>(read: () => Promise<Result>): Promise<Result> {
  try {
    return await read()
  } catch (error) {
    if (!isBroken(error)) throw error
    return read()
  }
}

async function apply(pool: Pool, statements: Statements, transaction: Transaction): Promise<Applied> {
  mustBeStorable(transaction)
  for (let conflicts = 0, breaks = 0; ;) {
    const client = await pool.connect()
    const tried = await attempt(client, statements, transaction)
    if ('applied' in tried) return tried.applied
    if (isConflict(tried.error) && ++conflicts < triesAfterConflict)
      await sleep(Math.random() * 2 ** Math.min(conflicts, 6))
    else if (!isBroken(tried.error) || ++breaks >= triesAfterBreak) throw tried.error
  }
}

/** Gives its outcome, or the error before which nothing was committed. */
async function attempt(
  client: PoolClient,
  statements: Statements,
  transaction: Transaction,
): Promise<{ readonly applied: Applied } | { readonly error: unknown }> {
  let committing = false
  try {
    await client.query('begin isolation level read committed read write')
    const steps = applying(statements, transaction)
    let step = steps.next()
    while (!step.done) step = steps.next(await execute(client, step.value))
    if (step.value.is !== 'applied') {
      await client.query('rollback')
      client.release()
      return { applied: step.value }
    }
    committing = true
    const { command } = await client.query('commit')
    client.release()
    // a server that had to give up answers a COMMIT by ROLLBACK, without an error
    if (command !== 'COMMIT')
      throw new StoreError('store_failed', `The transaction was rolled back by the server (${command}).`)
    return { applied: step.value }
  } catch (error) {
    if (committing && !(error instanceof StoreError)) {
      client.release(true)
      return rolledBackAtCommit(error) ? { error } : { applied: { is: 'unknown', error: messageOf(error) } }
    }
    if (!committing) await letGo(client, error)
    return { error }
  }
}

/** Where the rollback cannot be told, closing the connection is one: no COMMIT was ever sent on it. */
async function letGo(client: PoolClient, error: unknown): Promise<void> {
  if (isBroken(error)) return client.release(true)
  try {
    await client.query('rollback')
    client.release()
  } catch {
    client.release(true)
  }
}

/** Serialization failure, deadlock; and a name taken between the look and the write, which the next look will see. */
const isConflict = (error: unknown): boolean => ['40001', '40P01', '23505'].includes(sqlState(error) ?? '')

/** The server shut down, or nothing was heard of it. */
const isBroken = (error: unknown): boolean => {
  const state = sqlState(error)
  if (error instanceof StoreError || error instanceof TypeError) return false
  return state === null ? !/after calling end on the pool/.test(messageOf(error)) : /^(08|57P)/.test(state)
}

/** Classes of errors at COMMIT that are always before its record is written; of any other (a shutdown) that is not known. */
const rolledBackAtCommit = (error: unknown): boolean => /^(23|25|40|53|54)/.test(sqlState(error) ?? '')
