import { applying, mustBeStorable } from '../apply.ts'
import { messageOf } from '../errors.ts'
import { pending, versionTable } from '../migrations.ts'
import { reads } from '../reads.ts'
import { statementsFor, type Statements } from '../statements.ts'
import { connect, isDiskFailure, type Connection } from './connection.ts'
import { sqliteDialect } from './dialect.ts'
import { preparePrivateFile } from './file.ts'
import type { Applied, Store, Transaction } from '../port.ts'

/**
 * The embedded store: one file.
 *
 * @param where a path, or `:memory:` for one that is gone when it is closed
 * @throws StoreError `store_newer`, `store_damaged`, `store_foreign`, `store_network_file_system`, `store_not_durable`
 */
export function openSqlite(where: string, now: () => number): Store {
  const connection = connect(where === ':memory:' ? where : preparePrivateFile(where))
  try {
    migrate(connection, now())
  } catch (error) {
    connection.close()
    throw error
  }
  const statements = statementsFor(sqliteDialect, { rowLocks: false })
  return {
    ...reads(statements, async (statement) => connection.run(statement)),
    apply: async (transaction) => apply(connection, statements, transaction),
    close: async () => connection.close(),
  }
}

function migrate(connection: Connection, now: number): void {
  connection.exec('begin immediate')
  try {
    // read under the lock: another process may have migrated meanwhile
    connection.exec(versionTable.sqlite)
    const [last] = connection.run({ sql: 'select coalesce(max(number), 0) as at from schema_version', parameters: [] })
    const statements = pending(last?.['at'] as number, 'sqlite', connection.file, now)
    for (const sql of statements) connection.exec(sql)
    connection.exec(statements.length > 0 ? 'commit' : 'rollback')
  } catch (error) {
    if (connection.inTransaction()) connection.exec('rollback')
    throw error
  }
}

/** From BEGIN to COMMIT without a pause: no statement of another task can get in between. */
function apply(connection: Connection, statements: Statements, transaction: Transaction): Applied {
  mustBeStorable(transaction)
  let committing = false
  connection.run(begin)
  try {
    const steps = applying(statements, transaction)
    let step = steps.next()
    while (!step.done) step = steps.next(connection.run(step.value))
    committing = step.value.is === 'applied'
    connection.run(committing ? commit : rollback)
    return step.value
  } catch (error) {
    if (connection.inTransaction()) connection.run(rollback)
    if (committing && isDiskFailure(error)) return { is: 'unknown', error: messageOf(error) }
    throw error
  }
}

const begin = { sql: 'begin immediate', parameters: [] }
const commit = { sql: 'commit', parameters: [] }
const rollback = { sql: 'rollback', parameters: [] }
