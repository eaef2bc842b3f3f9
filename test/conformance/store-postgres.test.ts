import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openStore, type Change, type Store } from '../../src/store/index.ts'
import { newest } from '../../src/store/migrations.ts'
import { cuttingProxy, type CuttingProxy } from '../support/cutting-proxy.ts'
import { startPostgres, whyNoPostgres, type Postgres } from '../support/postgres.ts'
import { event, job } from '../support/records.ts'

/** What is PostgreSQL's alone: connections that break, settings that lose commits. */
const missing = whyNoPostgres()
if (missing !== null) console.warn(`PostgreSQL's faults are not tested: ${missing}`)

const insertJob = (id: string): Change => ({ do: 'insert', table: 'jobs', row: job(id) })

describe.skipIf(missing !== null)('the store on PostgreSQL', () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.stop())

  const run = async (where: string, sql: string) => {
    const client = new Client({ connectionString: where })
    await client.connect()
    try {
      return (await client.query(sql)).rows as unknown[]
    } finally {
      await client.end()
    }
  }

  describe('when its connection is cut', () => {
    let proxy: CuttingProxy
    let store: Store
    let direct: string
    beforeEach(async () => {
      direct = await postgres.database()
      proxy = await cuttingProxy(postgres.port)
      store = await openStore(direct.replace(`:${postgres.port}/`, `:${proxy.port}/`))
      await store.apply({ changes: [insertJob('a')], events: [event('a')] })
    })
    afterEach(async () => {
      await store.close()
      await proxy.close()
    })

    const raise = (lastSlot: number): Change => ({ do: 'update', table: 'jobs', id: 'a', expect: 1, row: { lastSlot } })

    test('as the answer to COMMIT comes: unknown, and the opposite write finds that it was applied', async () => {
      proxy.cutOnce('after commit')
      expect(await store.apply({ changes: [raise(1)], events: [event('a')] })).toMatchObject({ is: 'unknown' })
      expect(await store.apply({ changes: [raise(2)], events: [] })).toEqual({
        is: 'refused',
        change: 0,
        why: 'version',
      })
      expect(await store.get('jobs', 'a')).toMatchObject({ version: 2, lastSlot: 1 })
      expect(await store.events(0, { limit: 9 })).toHaveLength(2)
    })

    test('before COMMIT arrives: unknown too, and the opposite write wins', async () => {
      proxy.cutOnce('before commit')
      expect(await store.apply({ changes: [raise(1)], events: [event('a')] })).toMatchObject({ is: 'unknown' })
      expect(await store.apply({ changes: [raise(2)], events: [] })).toMatchObject({ is: 'applied' })
      expect(await store.get('jobs', 'a')).toMatchObject({ version: 2, lastSlot: 2 })
      expect(await store.events(0, { limit: 9 })).toHaveLength(1)
    })

    test('before COMMIT was sent: tried again on another connection, and applied once', async () => {
      proxy.cutOnce('at the first write')
      expect(await store.apply({ changes: [insertJob('b')], events: [event('b')] })).toEqual({ is: 'applied', seq: 2 })
      expect(await store.jobs({})).toHaveLength(2)
    })

    test('while it rests: neither a read nor a write is troubled', async () => {
      await run(direct, 'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $$portal$$')
      await sleep(20)
      expect(await store.get('jobs', 'a')).toMatchObject({ id: 'a' })
      await run(direct, 'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $$portal$$')
      expect(await store.apply({ changes: [raise(1)], events: [] })).toMatchObject({ is: 'applied' })
    })
  })

  test('a transaction of another client that holds a row is waited for', async () => {
    const where = await postgres.database()
    const store = await openStore(where)
    await store.apply({ changes: [insertJob('a')], events: [] })
    const other = new Client({ connectionString: where })
    await other.connect()
    await other.query('begin')
    await other.query('update jobs set version = version + 1')
    const applying = store.apply({
      changes: [{ do: 'update', table: 'jobs', id: 'a', expect: 1, row: { lastSlot: 1 } }],
      events: [],
    })
    await sleep(50)
    await other.query('commit')
    expect(await applying).toEqual({ is: 'refused', change: 0, why: 'version' })
    await other.end()
    await store.close()
  })

  test('synchronous_commit=off is refused by name, whoever set it', async () => {
    const where = await postgres.database({ settings: 'synchronous_commit = off' })
    await expect(openStore(where)).rejects.toMatchObject({
      code: 'store_not_durable',
      message: expect.stringContaining('synchronous_commit=off'),
    })
  })

  test('a newer schema is refused by its number, and nothing is changed', async () => {
    const where = await postgres.database()
    await (await openStore(where)).close()
    await run(where, `insert into schema_version values (${newest + 3}, 'of the future', 0)`)
    await expect(openStore(where)).rejects.toMatchObject({
      code: 'store_newer',
      message: expect.stringContaining(`version ${newest + 3}, this Portal knows up to ${newest}`),
    })
  })

  test('a server that takes no writes, has no such database or is not there is named without the password', async () => {
    const standby = await postgres.database({ settings: 'default_transaction_read_only = on' })
    await expect(openStore(standby)).rejects.toMatchObject({ code: 'store_failed' })
    const nowhere = `postgresql://postgres:hidden@127.0.0.1:${postgres.port}/nowhere`
    await expect(openStore(nowhere)).rejects.toThrow(/^(?!.*hidden).*no such database.*createdb/)
    await expect(openStore('postgresql://postgres:hidden@127.0.0.1:1/x')).rejects.toMatchObject({
      code: 'store_unreachable',
      message: expect.not.stringContaining('hidden'),
    })
  })
})
