import { Kysely, sql, type CompiledQuery, type Dialect } from 'kysely'
import { columnNames, type Cell } from './rows.ts'
import type { TableName } from './port.ts'

/** What a driver executes: one path to the connection, no query builder behind it. */
export interface Statement {
  readonly sql: string
  readonly parameters: readonly Cell[]
}

interface Row {
  /** drawn by the database in the order of insertion */
  readonly nr: number
  readonly id: string
  readonly version: number
  readonly doc: string
}
interface Database {
  jobs: Row & { name: string; state: string; ended: number; created_at: number; due: number | null }
  attempts: Row & { job_id: string; token: number; agent_id: string; alive: number }
  moves: Row & { job_id: string }
  connections: Row & { committed_micros: number; cap_micros: number | null }
  decisions: Row & { subject: string; policy: string }
  installation: Row
  events: { seq: number; subject: string; doc: string }
  counters: { name: string; last: number }
}
/** The tables of records alike, for what is the same in all of them. */
type AnyTable = Record<TableName, Omit<Row, 'nr'> & Record<string, Cell>>

type Args = Readonly<Record<string, Cell>>
type Prepared<A extends Args = Args> = (args: A) => Statement

/** Stands for an argument while a query is compiled. */
class Slot {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

/** Builds a query once and fills it in at each use: building costs more than SQLite takes to answer. */
const prepared = <A extends Args>(build: (slots: A) => { compile(): CompiledQuery }): Prepared<A> => {
  const slots = new Proxy({}, { get: (_, name) => new Slot(String(name)) }) as A
  const { sql: text, parameters } = build(slots).compile()
  return (args) => ({
    sql: text,
    parameters: parameters.map((p) => (p instanceof Slot ? (args[p.name] ?? null) : (p as Cell))),
  })
}

const each = <P>(make: (table: TableName) => P) =>
  Object.fromEntries((Object.keys(columnNames) as TableName[]).map((t) => [t, make(t)])) as Record<TableName, P>
const valuesOf = (table: TableName, slots: Args) =>
  Object.fromEntries([...columnNames[table], 'id', 'version', 'doc'].map((name) => [name, slots[name] ?? null]))

/** How many events one statement takes. */
export const eventsAtOnce = 16

/** Every statement of the store, compiled for one dialect. */
export type Statements = ReturnType<typeof statementsFor>

/** @param rowLocks whether a read inside a transaction must lock its row; one writer at a time needs no such lock */
export function statementsFor(dialect: Dialect, { rowLocks }: { readonly rowLocks: boolean }) {
  const db = new Kysely<Database>({ dialect })
  const any = db as unknown as Kysely<AnyTable>
  return {
    rowLocks,

    // reads
    get: each((table) => prepared<{ id: string }>(({ id }) => any.selectFrom(table).selectAll().where('id', '=', id))),
    jobByName: prepared<{ name: string }>(({ name }) => db.selectFrom('jobs').selectAll().where('name', '=', name)),
    jobsByPrefix: prepared<{ from: string; to: string; limit: number }>(({ from, to, limit }) =>
      db.selectFrom('jobs').selectAll().where('name', '>=', from).where('name', '<=', to).orderBy('name').limit(limit),
    ),
    jobs: prepared<{ before: number; limit: number }>(({ before, limit }) =>
      db
        .selectFrom('jobs')
        .selectAll()
        .where('created_at', '<', before)
        .orderBy('created_at', 'desc')
        .orderBy('nr', 'desc')
        .limit(limit),
    ),
    jobsByEnded: prepared<{ ended: number; before: number; limit: number }>(({ ended, before, limit }) =>
      db
        .selectFrom('jobs')
        .selectAll()
        .where('ended', '=', ended)
        .where('created_at', '<', before)
        .orderBy('created_at', 'desc')
        .orderBy('nr', 'desc')
        .limit(limit),
    ),
    /** The rest of those of one instant. */
    jobsTied: prepared<{ at: number; nr: number }>(({ at, nr }) =>
      db.selectFrom('jobs').selectAll().where('created_at', '=', at).where('nr', '<', nr).orderBy('nr', 'desc'),
    ),
    jobsTiedByEnded: prepared<{ ended: number; at: number; nr: number }>(({ ended, at, nr }) =>
      db
        .selectFrom('jobs')
        .selectAll()
        .where('ended', '=', ended)
        .where('created_at', '=', at)
        .where('nr', '<', nr)
        .orderBy('nr', 'desc'),
    ),
    jobsDue: prepared<{ now: number; limit: number }>(({ now, limit }) =>
      db.selectFrom('jobs').selectAll().where('due', '<=', now).orderBy('due').orderBy('nr').limit(limit),
    ),
    nextDue: prepared(() => db.selectFrom('jobs').select(({ fn }) => fn.min('due').as('due'))),
    attemptsOf: prepared<{ job: string }>(({ job }) =>
      db.selectFrom('attempts').selectAll().where('job_id', '=', job).orderBy('token'),
    ),
    attemptsAlive: prepared(() => db.selectFrom('attempts').selectAll().where('alive', '=', sql.lit(1)).orderBy('nr')),
    attemptsOfAgent: prepared<{ agent: string }>(({ agent }) =>
      db.selectFrom('attempts').selectAll().where('agent_id', '=', agent).orderBy('nr'),
    ),
    attemptsAliveOfAgent: prepared<{ agent: string }>(({ agent }) =>
      db.selectFrom('attempts').selectAll().where('agent_id', '=', agent).where('alive', '=', sql.lit(1)).orderBy('nr'),
    ),
    movesOf: prepared<{ job: string }>(({ job }) =>
      db.selectFrom('moves').selectAll().where('job_id', '=', job).orderBy('nr'),
    ),
    decisionsOf: prepared<{ subject: string; limit: number }>(({ subject, limit }) =>
      db.selectFrom('decisions').selectAll().where('subject', '=', subject).orderBy('nr', 'desc').limit(limit),
    ),
    decisionsBefore: prepared<{ subject: string; before: string; limit: number }>(({ subject, before, limit }) =>
      db
        .selectFrom('decisions')
        .selectAll()
        .where('subject', '=', subject)
        .where('nr', '<', db.selectFrom('decisions').select('nr').where('id', '=', before))
        .orderBy('nr', 'desc')
        .limit(limit),
    ),
    lastDecision: prepared<{ subject: string; policy: string }>(({ subject, policy }) =>
      db
        .selectFrom('decisions')
        .selectAll()
        .where('subject', '=', subject)
        .where('policy', '=', policy)
        .orderBy('nr', 'desc')
        .limit(sql.lit(1)),
    ),
    connections: prepared(() => db.selectFrom('connections').selectAll().orderBy('id')),
    events: prepared<{ after: number; limit: number }>(({ after, limit }) =>
      db.selectFrom('events').selectAll().where('seq', '>', after).orderBy('seq').limit(limit),
    ),
    eventsOf: prepared<{ subject: string; after: number; limit: number }>(({ subject, after, limit }) =>
      db
        .selectFrom('events')
        .selectAll()
        .where('subject', '=', subject)
        .where('seq', '>', after)
        .orderBy('seq')
        .limit(limit),
    ),

    // inside a transaction
    insert: each((table) =>
      prepared((slots) =>
        any
          .insertInto(table)
          .values(valuesOf(table, slots) as never)
          .onConflict((c) => c.doNothing())
          .returning('id'),
      ),
    ),
    /** The row as it is, kept so until the transaction ends. */
    lock: each((table) =>
      prepared<{ id: string }>(({ id }) => {
        const query = any.selectFrom(table).selectAll().where('id', '=', id)
        return rowLocks ? query.forUpdate() : query
      }),
    ),
    /** The row's version, which nobody changes until the transaction ends. */
    hold: each((table) =>
      prepared<{ id: string }>(({ id }) => {
        const query = any.selectFrom(table).select('version').where('id', '=', id)
        return rowLocks ? query.forShare() : query
      }),
    ),
    update: each((table) =>
      prepared((slots) =>
        any
          .updateTable(table)
          .set(valuesOf(table, slots) as never)
          .where('id', '=', slots['id'] as string)
          .where('version', '=', slots['expect'] as number)
          .returning('id'),
      ),
    ),
    remove: each((table) =>
      prepared<{ id: string; expect: number }>(({ id, expect }) =>
        any.deleteFrom(table).where('id', '=', id).where('version', '=', expect).returning('id'),
      ),
    ),
    /** One guarded write of one row: a sum in another statement would pass twice. */
    add: prepared<{ id: string; micros: number }>(({ id, micros }) =>
      addTo(db, id, micros, sql`${sql.lit(Number.MAX_SAFE_INTEGER)}`),
    ),
    addWithinCap: prepared<{ id: string; micros: number }>(({ id, micros }) =>
      addTo(db, id, micros, sql`coalesce(cap_micros, ${sql.lit(Number.MAX_SAFE_INTEGER)})`),
    ),
    /** Rows wait for each other here until the one before has committed: numbers become visible in their order. */
    drawSeq: prepared<{ count: number }>(({ count }) =>
      db
        .updateTable('counters')
        .set(({ eb }) => ({ last: eb('last', '+', count) }))
        .where('name', '=', sql.lit('events'))
        .returning('last'),
    ),
    lastSeq: prepared(() => db.selectFrom('counters').select('last').where('name', '=', sql.lit('events'))),
    insertEvents: Array.from({ length: eventsAtOnce }, (_, last) =>
      prepared((slots) =>
        db.insertInto('events').values(
          Array.from({ length: last + 1 }, (_value, n) => ({
            seq: slots[`seq${n}`] as number,
            subject: slots[`subject${n}`] as string,
            doc: slots[`doc${n}`] as string,
          })),
        ),
      ),
    ),
  }
}

const addTo = (db: Kysely<Database>, id: string, micros: number, limit: ReturnType<typeof sql>) => {
  const amount = sql<number>`cast(${micros} as bigint)`
  return (
    db
      .updateTable('connections')
      .set(({ eb }) => ({
        committed_micros: eb('committed_micros', '+', amount),
        version: eb('version', '+', sql.lit(1)),
      }))
      .where('id', '=', id)
      // a release is never refused, whatever the cap has become
      .where(sql<boolean>`(committed_micros + ${amount} <= ${limit} or ${amount} <= 0)`)
      .returning('id')
  )
}
