import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { openStore, type Applied, type Change, type Store, type Transaction } from '../../src/store/index.ts'
import { startPostgres, whyNoPostgres } from '../support/postgres.ts'
import { connection, event, job } from '../support/records.ts'

/** Whatever is applied in whatever order, a store answers as twenty lines of arithmetic do. */
interface Model {
  readonly jobs: Map<string, { name: string; version: number; lastSlot: number }>
  readonly connections: Map<string, { version: number; committed: number; cap: number | null }>
  events: number
}
type Refusal = Extract<Applied, { is: 'refused' }>['why'] | null

function change(model: Model, one: Change): Refusal {
  const rows: Map<string, { version: number }> = one.table === 'jobs' ? model.jobs : model.connections
  const nameTaken = (name: string, except?: string) =>
    [...model.jobs].some(([id, row]) => row.name === name && id !== except)
  if (one.do === 'insert') {
    if (rows.has(one.row.id)) return 'exists'
    if (one.table === 'jobs') {
      if (nameTaken(one.row.name)) return 'name_taken'
      model.jobs.set(one.row.id, { name: one.row.name, version: 1, lastSlot: one.row.lastSlot })
    } else if (one.table === 'connections')
      model.connections.set(one.row.id, { version: 1, committed: one.row.committedMicros, cap: one.row.capMicros })
    return null
  }
  const row = rows.get(one.id)
  if (row === undefined) return 'missing'
  if (one.do === 'add') {
    const account = model.connections.get(one.id) as { version: number; committed: number; cap: number | null }
    if (one.withinCap && one.micros > 0 && account.committed + one.micros > (account.cap ?? Infinity)) return 'cap'
    account.committed += one.micros
    account.version++
    return null
  }
  if (row.version !== (one.do === 'must' ? one.version : one.expect)) return 'version'
  if (one.do === 'must') return null
  if (one.do === 'remove') return rows.delete(one.id) ? null : 'missing'
  if (one.table === 'jobs') {
    if (one.row.name !== undefined && nameTaken(one.row.name, one.id)) return 'name_taken'
    Object.assign(row, one.row)
  } else if (one.table === 'connections') Object.assign(row, { cap: one.row.capMicros })
  row.version++
  return null
}

function apply(
  model: Model,
  { changes, events }: Transaction,
): { readonly next: Model; readonly refused: object | null } {
  const next = structuredClone(model)
  for (const [index, one] of changes.entries()) {
    const why = change(next, one)
    if (why !== null) return { next: model, refused: { is: 'refused', change: index, why } }
  }
  next.events += events.length
  return { next, refused: null }
}

const few = fc.integer({ min: 0, max: 1 })
const versions = fc.integer({ min: 1, max: 2 })
const amounts = fc.integer({ min: -4, max: 8 })
const cap = fc.option(fc.integer({ min: 0, max: 12 }))

/** Few ids, names and versions, so that guards fail about as often as they hold. */
const transactions = (run: string): fc.Arbitrary<Transaction> => {
  const id = few.map((n) => `${run}${n}`)
  const part = fc.record({ name: id, lastSlot: few }, { requiredKeys: [] })
  const changes: fc.Arbitrary<Change> = fc.oneof(
    fc.record({ id, name: id }).map((r): Change => ({ do: 'insert', table: 'jobs', row: job(r.id, { name: r.name }) })),
    fc.record({ id, expect: versions, row: part }).map((r): Change => ({ do: 'update', table: 'jobs', ...r })),
    fc.record({ id, expect: versions }).map((r): Change => ({ do: 'remove', table: 'jobs', ...r })),
    fc.record({ id, version: versions }).map((r): Change => ({ do: 'must', table: 'jobs', ...r })),
    fc
      .record({ id, capMicros: cap })
      .map((r): Change => ({ do: 'insert', table: 'connections', row: connection(r.id, r) })),
    fc.record({ id, expect: versions, capMicros: cap }).map(({ id: of, expect: at, capMicros }): Change => {
      return { do: 'update', table: 'connections', id: of, expect: at, row: { capMicros } }
    }),
    fc
      .record({ id, micros: amounts, withinCap: fc.boolean() })
      .map((r): Change => ({ do: 'add', table: 'connections', ...r })),
  )
  return fc.record({
    changes: fc.array(changes, { maxLength: 3 }),
    events: fc.array(
      few.map((n) => event(run, { n })),
      { maxLength: 3 },
    ),
  })
}

async function seen(store: Store, run: string, from: number): Promise<Model> {
  const jobs = await store.jobsByPrefix(run, 100)
  const connections = (await store.connections()).filter(({ id }) => id.startsWith(run))
  return {
    jobs: new Map(jobs.map(({ id, name, version, lastSlot }) => [id, { name, version, lastSlot }])),
    connections: new Map(
      connections.map(({ id, version, committedMicros, capMicros }) => [
        id,
        { version, committed: committedMicros, cap: capMicros },
      ]),
    ),
    events: (await store.events(from, { subject: run, limit: 1000 })).length,
  }
}

async function expectAgreement(store: Store, numRuns: number): Promise<void> {
  let runs = 0
  await fc.assert(
    fc.asyncProperty(fc.array(transactions('#'), { minLength: 6, maxLength: 24 }), async (sequence) => {
      const run = `r${runs++}-`
      const named = JSON.parse(JSON.stringify(sequence).replaceAll('"#', `"${run}`)) as Transaction[]
      let model: Model = { jobs: new Map(), connections: new Map(), events: 0 }
      for (const transaction of named) {
        const { next, refused } = apply(model, transaction)
        expect(await store.apply(transaction)).toMatchObject(refused ?? { is: 'applied' })
        model = next
      }
      expect(await seen(store, run, 0)).toEqual(model)
    }),
    { numRuns },
  )
}

const folder = mkdtempSync(join(tmpdir(), 'portal-model-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('any sequence of transactions on SQLite does what arithmetic says', async () => {
  const store = await openStore(join(folder, 'portal.db'))
  await expectAgreement(store, 300)
  await store.close()
})

const missing = whyNoPostgres()
if (missing !== null) console.warn(`the store on PostgreSQL is not compared with the model: ${missing}`)
test.skipIf(missing !== null)('any sequence of transactions on PostgreSQL does what arithmetic says', async () => {
  const postgres = await startPostgres()
  try {
    const store = await openStore(await postgres.database())
    await expectAgreement(store, 60)
    await store.close()
  } finally {
    await postgres.stop()
  }
})
