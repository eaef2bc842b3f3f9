import { fromRow, text, toColumns, whole, type Cell, type Raw } from './rows.ts'
import { eventsAtOnce, type Statement, type Statements } from './statements.ts'
import type { Applied, Change, ChangeOf, TableName, Tables, Transaction } from './port.ts'

type Refusal = Extract<Applied, { readonly is: 'refused' }>['why']
type Steps<Result> = Generator<Statement, Result, readonly Raw[]>

/**
 * A transaction, step by step, between its BEGIN and its COMMIT: yields statements and is given their rows. SQLite runs it
 * through without a pause, PostgreSQL awaits each; the guards are written once. Refused: what was written is to be rolled back.
 */
export function* applying(statements: Statements, { changes, events }: Transaction): Steps<Applied> {
  yield* lockInOrder(statements, changes)
  for (const [index, change] of changes.entries()) {
    const why = yield* one(statements, change)
    if (why !== null) return { is: 'refused', change: index, why }
  }
  return { is: 'applied', seq: yield* record(statements, events) }
}

/** Throws a TypeError for what no database could keep faithfully, before anything is begun. */
export function mustBeStorable({ changes, events }: Transaction): void {
  for (const change of changes) {
    text(`${change.table}.id`, change.do === 'insert' ? change.row.id : change.id)
    if (change.do === 'add') whole('micros', change.micros)
  }
  for (const { subject, at } of events) {
    text('events.subject', subject)
    whole('events.at', at)
  }
}

/**
 * Two transactions that take the same rows in opposite order wait for each other until the server kills one, a second
 * later. So where rows are locked at all, a transaction of several takes them in the one order of their names first.
 */
function* lockInOrder({ rowLocks, lock, hold }: Statements, changes: readonly Change[]): Steps<void> {
  if (!rowLocks) return
  const rows = new Map<string, Statement>()
  for (const change of changes) {
    if (change.do === 'insert') continue
    const { table, id } = change
    const key = `${table}/${id}`
    if (change.do !== 'must') rows.set(key, lock[table]({ id }))
    else if (!rows.has(key)) rows.set(key, hold[table]({ id }))
  }
  if (rows.size < 2) return
  for (const [, statement] of [...rows].sort(([a], [b]) => (a < b ? -1 : 1))) yield statement
}

function one(statements: Statements, change: Change): Steps<Refusal | null> {
  switch (change.do) {
    case 'insert':
      return insert(statements, change as ChangeOf<TableName> & { do: 'insert' })
    case 'update':
      return update(statements, change as ChangeOf<TableName> & { do: 'update' })
    case 'remove':
      return remove(statements, change)
    case 'must':
      return must(statements, change)
    case 'add':
      return add(statements, change)
  }
}

function* insert(
  statements: Statements,
  { table, row }: ChangeOf<TableName> & { do: 'insert' },
): Steps<Refusal | null> {
  const written = yield statements.insert[table](toColumns(table, { ...row, version: 1 } as Tables[TableName]))
  if (written.length > 0) return null
  const there = yield statements.get[table]({ id: row.id })
  return there.length > 0 ? 'exists' : 'name_taken'
}

function* update(
  statements: Statements,
  { table, id, expect, row }: ChangeOf<TableName> & { do: 'update' },
): Steps<Refusal | null> {
  const [raw] = yield statements.lock[table]({ id })
  if (raw === undefined) return 'missing'
  if (raw['version'] !== expect) return 'version'
  const merged = { ...fromRow(table, raw), ...row, id, version: expect + 1 } as Tables[TableName]
  if (table === 'jobs' && 'name' in row && (merged as Tables['jobs']).name !== raw['name']) {
    const [other] = yield statements.jobByName({ name: text('jobs.name', (merged as Tables['jobs']).name) })
    if (other !== undefined) return 'name_taken'
  }
  const written = yield statements.update[table]({ ...toColumns(table, merged), expect })
  return written.length > 0 ? null : 'version'
}

function* remove(statements: Statements, { table, id, expect }: Change & { do: 'remove' }): Steps<Refusal | null> {
  const removed = yield statements.remove[table]({ id, expect })
  return removed.length > 0 ? null : yield* missingOr(statements, table, id, 'version')
}

function* must(statements: Statements, { table, id, version }: Change & { do: 'must' }): Steps<Refusal | null> {
  const [raw] = yield statements.hold[table]({ id })
  if (raw === undefined) return 'missing'
  return raw['version'] === version ? null : 'version'
}

function* add(statements: Statements, { id, micros, withinCap }: Change & { do: 'add' }): Steps<Refusal | null> {
  const added = yield withinCap ? statements.addWithinCap({ id, micros }) : statements.add({ id, micros })
  return added.length > 0 ? null : yield* missingOr(statements, 'connections', id, 'cap')
}

function* missingOr(statements: Statements, table: TableName, id: string, why: Refusal): Steps<Refusal> {
  const there = yield statements.get[table]({ id })
  return there.length > 0 ? why : 'missing'
}

/** Last, since from the draw on every other writer of events waits: nothing but the commit comes after. */
function* record(statements: Statements, events: Transaction['events']): Steps<number> {
  const count = events.length
  const [counter] = yield count === 0 ? statements.lastSeq({}) : statements.drawSeq({ count })
  const last = counter?.['last'] as number
  for (let from = 0; from < count; from += eventsAtOnce) {
    const some = events.slice(from, from + eventsAtOnce)
    const slots: Record<string, Cell> = {}
    for (const [n, event] of some.entries()) {
      slots[`seq${n}`] = last - count + 1 + from + n
      slots[`subject${n}`] = event.subject
      slots[`doc${n}`] = JSON.stringify(event)
    }
    yield (statements.insertEvents[some.length - 1] as NonNullable<(typeof statements.insertEvents)[number]>)(slots)
  }
  return last
}
