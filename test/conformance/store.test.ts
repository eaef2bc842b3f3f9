import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { never } from '../../src/core/time/index.ts'
import { openStore, type Applied, type Change, type Store, type Transaction } from '../../src/store/index.ts'
import { startPostgres, whyNoPostgres, type Postgres } from '../support/postgres.ts'
import { race } from '../support/race.ts'
import { anyReason, attempt, connection, decision, event, job, suspension } from '../support/records.ts'

/** What every adapter of the store's port does, on the real thing. */
const missing = whyNoPostgres()
if (missing !== null) console.warn(`the store on PostgreSQL is not tested: ${missing}`)

let postgres: Postgres | null = null
beforeAll(async () => {
  if (missing === null) postgres = await startPostgres()
})
afterAll(async () => {
  await postgres?.stop()
})

const folders: string[] = []
const places: Record<string, () => Promise<string>> = {
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portal-store-'))
    folders.push(folder)
    return join(folder, 'portal.db')
  },
  ...(missing === null && { postgres: async () => (postgres as Postgres).database() }),
}
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const applied = { is: 'applied', seq: expect.any(Number) }
const refused = (change: number, why: string) => ({ is: 'refused', change, why })
const only = (...changes: readonly Change[]): Transaction => ({ changes, events: [] })
const insertJob = (...given: Parameters<typeof job>): Change => ({ do: 'insert', table: 'jobs', row: job(...given) })

describe.each(Object.entries(places))('the store on %s', (_name, place) => {
  let where: string
  let store: Store
  beforeEach(async () => {
    where = await place()
    store = await openStore(where)
  })
  afterEach(() => store.close())

  describe('a change', () => {
    test('insert: the row comes back as it was given, at version 1', async () => {
      const row = job('a', { spec: { ...job('a').spec, env: { ODD: '\u0000 \ud800 "x" 🙂', __proto__: 'own' } } })
      expect(await store.apply(only({ do: 'insert', table: 'jobs', row }))).toEqual(applied)
      expect(await store.get('jobs', 'a')).toEqual({ ...row, version: 1 })
      expect(await store.jobByName('a')).toEqual({ ...row, version: 1 })
    })

    test('insert is refused when the id or a name is taken', async () => {
      await store.apply(only(insertJob('a', { name: 'nightly' })))
      expect(await store.apply(only(insertJob('a', { name: 'other' })))).toEqual(refused(0, 'exists'))
      expect(await store.apply(only(insertJob('a', { name: 'nightly' })))).toEqual(refused(0, 'exists'))
      expect(await store.apply(only(insertJob('b', { name: 'nightly' })))).toEqual(refused(0, 'name_taken'))
      expect(await store.get('jobs', 'b')).toBeNull()
    })

    test('update writes part of a row and raises its version; another version refuses it', async () => {
      await store.apply(only(insertJob('a', { lastSlot: 3 })))
      const update = (expect: number): Change => ({
        do: 'update',
        table: 'jobs',
        id: 'a',
        expect,
        row: { lastToken: 7 },
      })
      expect(await store.apply(only(update(2)))).toEqual(refused(0, 'version'))
      expect(await store.apply(only(update(1)))).toEqual(applied)
      expect(await store.get('jobs', 'a')).toMatchObject({ version: 2, lastToken: 7, lastSlot: 3 })
      expect(await store.apply(only(update(1)))).toEqual(refused(0, 'version'))
      const nowhere: Change = { do: 'update', table: 'jobs', id: 'b', expect: 1, row: {} }
      expect(await store.apply(only(nowhere))).toEqual(refused(0, 'missing'))
    })

    test('update writes null where null is given, and keeps a nested value whole', async () => {
      await store.apply(only(insertJob('a', { wish: { to: 'suspend', by: { person: 'x' }, at: 1 }, current: 4 })))
      const row = { wish: null, current: null, state: { is: 'running', since: 5, unreachableSince: null } } as const
      await store.apply(only({ do: 'update', table: 'jobs', id: 'a', expect: 1, row }))
      expect(await store.get('jobs', 'a')).toMatchObject(row)
    })

    test('update cannot take a name that is taken, nor change id or version by the row', async () => {
      await store.apply(only(insertJob('a'), insertJob('b')))
      const rename = (name: string): Change => ({ do: 'update', table: 'jobs', id: 'a', expect: 1, row: { name } })
      expect(await store.apply(only(rename('b')))).toEqual(refused(0, 'name_taken'))
      const smuggled = { id: 'z', version: 40, lastSlot: 1 } as Partial<ReturnType<typeof job>>
      await store.apply(only({ do: 'update', table: 'jobs', id: 'a', expect: 1, row: smuggled }))
      expect(await store.get('jobs', 'a')).toMatchObject({ id: 'a', version: 2, lastSlot: 1 })
    })

    test('remove takes the row away at the version expected', async () => {
      await store.apply(only(insertJob('a')))
      const remove = (expect: number): Change => ({ do: 'remove', table: 'jobs', id: 'a', expect })
      expect(await store.apply(only(remove(2)))).toEqual(refused(0, 'version'))
      expect(await store.apply(only(remove(1)))).toEqual(applied)
      expect(await store.apply(only(remove(1)))).toEqual(refused(0, 'missing'))
      expect(await store.get('jobs', 'a')).toBeNull()
    })

    test('must writes nothing, and refuses when the row is not as said', async () => {
      await store.apply(only(insertJob('a')))
      const must = (version: number, id = 'a'): Change => ({ do: 'must', table: 'jobs', id, version })
      expect(await store.apply(only(must(1), insertJob('b')))).toEqual(applied)
      expect(await store.get('jobs', 'a')).toMatchObject({ version: 1 })
      expect(await store.apply(only(insertJob('c'), must(2)))).toEqual(refused(1, 'version'))
      expect(await store.apply(only(must(1, 'nobody')))).toEqual(refused(0, 'missing'))
      expect(await store.get('jobs', 'c')).toBeNull()
    })

    test('J-CAP-2 add passes no cap; without a cap, or when money comes back, it adds', async () => {
      const dear = 5_000_000_000_000
      const capped = connection('capped', { capMicros: 2 * dear, committedMicros: 7 })
      await store.apply(only({ do: 'insert', table: 'connections', row: capped }))
      await store.apply(only({ do: 'insert', table: 'connections', row: connection('free') }))
      const add = (id: string, micros: number, withinCap = true) =>
        store.apply(only({ do: 'add', table: 'connections', id, micros, withinCap }))
      expect(await add('capped', 2 * dear - 6)).toEqual(refused(0, 'cap'))
      expect(await add('capped', 2 * dear - 7)).toEqual(applied)
      expect(await add('capped', 1)).toEqual(refused(0, 'cap'))
      expect(await add('capped', 5, false)).toEqual(applied)
      expect(await add('capped', -1)).toEqual(applied)
      expect(await store.get('connections', 'capped')).toMatchObject({ committedMicros: 2 * dear + 4, version: 4 })
      expect(await add('free', dear)).toEqual(applied)
      expect(await add('nobody', 1)).toEqual(refused(0, 'missing'))
    })

    test('what was added is kept by an update that does not speak of it', async () => {
      await store.apply(only({ do: 'insert', table: 'connections', row: connection('c', { capMicros: 10 }) }))
      await store.apply(only({ do: 'add', table: 'connections', id: 'c', micros: 9, withinCap: true }))
      const raise = { do: 'update', table: 'connections', id: 'c', expect: 2, row: { capMicros: 20 } } as const
      expect(await store.apply(only(raise))).toEqual(applied)
      expect(await store.connections()).toEqual([{ ...connection('c'), capMicros: 20, committedMicros: 9, version: 3 }])
    })

    test('changes of one transaction see each other, in order', async () => {
      const update: Change = { do: 'update', table: 'jobs', id: 'a', expect: 1, row: { lastToken: 1 } }
      expect(await store.apply(only(insertJob('a'), update, { ...update, expect: 2 }))).toEqual(applied)
      expect(await store.get('jobs', 'a')).toMatchObject({ version: 3 })
    })

    test('a refusal applies nothing: no change, no event, no number drawn', async () => {
      await store.apply({ changes: [insertJob('a')], events: [event('a')] })
      const late: Transaction = { changes: [insertJob('b'), insertJob('c'), insertJob('a')], events: [event('b')] }
      expect(await store.apply(late)).toEqual(refused(2, 'exists'))
      expect(await store.jobs({})).toHaveLength(1)
      expect(await store.apply({ changes: [], events: [event('a')] })).toEqual({ is: 'applied', seq: 2 })
      expect((await store.events(0, { limit: 10 })).map(({ seq, subject }) => [seq, subject])).toEqual([
        [1, 'a'],
        [2, 'a'],
      ])
    })

    test('what no database keeps faithfully is thrown back before anything is written', async () => {
      const bad: readonly Transaction[] = [
        only(insertJob('ok'), insertJob('a\u0000b')),
        only(insertJob('ok'), insertJob('a', { due: 0.5 })),
        only(insertJob('ok'), insertJob('a', { due: NaN })),
        only(insertJob('ok'), insertJob('a', { name: 'x\ud800' })),
        { changes: [insertJob('ok')], events: [{ ...event('a'), at: NaN }] },
      ]
      for (const transaction of bad) await expect(store.apply(transaction)).rejects.toThrow(TypeError)
      expect(await store.jobs({})).toEqual([])
      expect(await store.get('jobs', 'a\u0000b')).toBeNull()
      expect(await store.jobByName('\u0000')).toBeNull()
      expect(await store.attemptsOf('\u0000')).toEqual([])
    })
  })

  describe('reads', () => {
    test('jobs by name, by prefix, newest first, ended or not, in pages', async () => {
      const over = { is: 'succeeded', since: 9 } as const
      const names = ['train', 'train-2', 'trainee', 'Train', 'trai_n', 'tränen']
      const rows = names.map((name, n) => insertJob(`j${n}`, { name, createdAt: n, ...(n > 3 && { state: over }) }))
      await store.apply(only(...rows))
      const byPrefix = async (prefix: string, limit = 10) =>
        (await store.jobsByPrefix(prefix, limit)).map((j) => j.name)
      expect(await byPrefix('train')).toEqual(['train', 'train-2', 'trainee'])
      expect(await byPrefix('train', 2)).toEqual(['train', 'train-2'])
      expect(await byPrefix('trä')).toEqual(['tränen'])
      expect(await byPrefix('%')).toEqual([])
      expect(await byPrefix('')).toHaveLength(6)
      const ids = async (filter: Parameters<Store['jobs']>[0]) => (await store.jobs(filter)).map((j) => j.id)
      expect(await ids({})).toEqual(['j5', 'j4', 'j3', 'j2', 'j1', 'j0'])
      expect(await ids({ ended: true })).toEqual(['j5', 'j4'])
      expect(await ids({ ended: false, limit: 2 })).toEqual(['j3', 'j2'])
      expect(await ids({ ended: false, limit: 2, before: 2 })).toEqual(['j1', 'j0'])
    })

    test('pages of jobs that were made at one instant leave none out', async () => {
      const over = { is: 'succeeded', since: 9 } as const
      const rows = Array.from({ length: 12 }, (_, n) =>
        insertJob(`j${n}`, { createdAt: Math.floor(n / 4), ...(n % 2 && { state: over }) }),
      )
      await store.apply(only(...rows))
      for (const filter of [{}, { ended: true }, { ended: false }]) {
        const seen: string[] = []
        for (let before = 99; ;) {
          const page = await store.jobs({ ...filter, limit: 3, before })
          seen.push(...page.map(({ id }) => id))
          const last = page.at(-1)
          if (last === undefined) break
          before = last.createdAt
        }
        const all = (await store.jobs(filter)).map(({ id }) => id)
        expect(seen).toEqual(all)
        expect(new Set(seen).size).toBe('ended' in filter ? 6 : 12)
      }
    })

    test('J-LOOP-1 what is due, oldest first; the next due; never is never due', async () => {
      expect(await store.nextDue()).toBeNull()
      const dues = { late: 30, soon: 10, now: 20, never, ever: Infinity }
      await store.apply(only(...Object.entries(dues).map(([id, due]) => insertJob(id, { due }))))
      const due = async (now: number, limit = 10) => (await store.jobsDue(now, limit)).map((j) => j.id)
      expect(await due(9)).toEqual([])
      expect(await due(20)).toEqual(['soon', 'now'])
      expect(await due(never)).toEqual(['soon', 'now', 'late'])
      expect(await due(100, 1)).toEqual(['soon'])
      expect(await store.nextDue()).toBe(10)
      await store.apply(only({ do: 'update', table: 'jobs', id: 'soon', expect: 1, row: { due: 40 } }))
      expect(await store.nextDue()).toBe(20)
      for (const id of ['never', 'ever']) expect(await store.get('jobs', id)).toMatchObject({ due: never })
    })

    test('attempts of a job, of an agent, alive', async () => {
      const rows = [attempt('a', 2), attempt('a', 10, { agentId: 'host' }), attempt('b', 1, { state: 'gone' })]
      await store.apply(only(...rows.map((row): Change => ({ do: 'insert', table: 'attempts', row }))))
      const ids = (all: readonly { readonly id: string }[]) => all.map(({ id }) => id)
      expect(ids(await store.attemptsOf('a'))).toEqual(['a.2', 'a.10'])
      expect(ids(await store.attemptsAlive())).toEqual(['a.2', 'a.10'])
      expect(ids(await store.attemptsOfAgent('agent'))).toEqual(['a.2', 'b.1'])
      expect(ids(await store.attemptsOfAgent('agent', { alive: true }))).toEqual(['a.2'])
      await store.apply(only({ do: 'update', table: 'attempts', id: 'a.2', expect: 1, row: { state: 'gone' } }))
      expect(ids(await store.attemptsAlive())).toEqual(['a.10'])
      expect(await store.get('attempts', 'a.10')).toEqual({ ...rows[1], version: 1 })
    })

    test('moves of a job in the order of their beginning; the installation', async () => {
      const moves = ['z', 'a', 'm'].map((id): Change => ({ do: 'insert', table: 'moves', row: suspension(id, 'job') }))
      for (const move of moves) await store.apply(only(move))
      expect((await store.movesOf('job')).map(({ id }) => id)).toEqual(['z', 'a', 'm'])
      const row = { id: 'here', name: 'i1', createdAt: 1, lastSeenAt: 2 }
      await store.apply(only({ do: 'insert', table: 'installation', row }))
      expect(await store.get('installation', 'here')).toEqual({ ...row, version: 1 })
    })

    test('J-WHY-1 decisions newest first, in pages; the last of a policy', async () => {
      for (const n of [1, 2, 3, 4, 5])
        await store.apply(
          only({ do: 'insert', table: 'decisions', row: decision(`d${n}`, 'job', { policy: n % 2 ? 'ttl' : 'spot' }) }),
        )
      const ids = async (page: { limit: number; before?: string }) =>
        (await store.decisionsOf('job', page)).map(({ id }) => id)
      expect(await ids({ limit: 2 })).toEqual(['d5', 'd4'])
      expect(await ids({ limit: 2, before: 'd4' })).toEqual(['d3', 'd2'])
      expect(await ids({ limit: 2, before: 'unknown' })).toEqual([])
      expect(await store.lastDecision('job', 'spot')).toMatchObject({ id: 'd4', version: 1 })
      expect(await store.lastDecision('job', 'idle')).toBeNull()
      expect(await store.lastDecision('other', 'spot')).toBeNull()
    })

    test('events after a number, of all or of one subject', async () => {
      const many = Array.from({ length: 40 }, (_, n) => event(n % 2 ? 'odd' : 'even', { n }))
      const told = { ...event('even', { '': [null, { a: 1 }] }), why: anyReason }
      expect(await store.apply({ changes: [], events: [...many, told] })).toEqual({ is: 'applied', seq: 41 })
      expect(await store.events(40, { limit: 9 })).toEqual([{ ...told, seq: 41 }])
      expect((await store.events(0, { limit: 100 })).map(({ facts }) => facts['n'] ?? 40)).toEqual([
        ...Array.from({ length: 41 }).keys(),
      ])
      expect((await store.events(10, { subject: 'odd', limit: 2 })).map(({ seq }) => seq)).toEqual([12, 14])
    })
  })

  describe('raced by 16 writers of four stores', () => {
    const sixteen = Array.from({ length: 16 }, (_, n) => n)
    const winners = (all: readonly Applied[]) => all.filter(({ is }) => is === 'applied').length
    const losersSay = (all: readonly Applied[]) =>
      new Set(
        all
          .filter(({ is }) => is !== 'applied')
          .map((one) => (one.is === 'refused' ? `${one.change} ${one.why}` : JSON.stringify(one))),
      )

    test('insert of one id, and of one name: one winner', async () => {
      const ids = await race(
        where,
        sixteen.map((n) => only(insertJob('a', { name: `n${n}` }))),
      )
      expect([winners(ids), losersSay(ids)]).toEqual([1, new Set(['0 exists'])])
      const names = await race(
        where,
        sixteen.map((n) => only(insertJob(`j${n}`, { name: 'same' }))),
      )
      expect([winners(names), losersSay(names)]).toEqual([1, new Set(['0 name_taken'])])
      expect(await store.jobs({})).toHaveLength(2)
    })

    test('J-RES-1 update of one version: one winner', async () => {
      await store.apply(only(insertJob('a')))
      const all = await race(
        where,
        sixteen.map((n) => ({
          changes: [{ do: 'update', table: 'jobs', id: 'a', expect: 1, row: { lastToken: n } }],
          events: [event('a', { n })],
        })),
      )
      expect([winners(all), losersSay(all)]).toEqual([1, new Set(['0 version'])])
      const [told] = await store.events(0, { limit: 20 })
      expect(await store.get('jobs', 'a')).toMatchObject({ version: 2, lastToken: told?.facts['n'] })
    })

    test('a rename to one name: one winner', async () => {
      await store.apply(only(...sixteen.map((n) => insertJob(`j${n}`))))
      const all = await race(
        where,
        sixteen.map((n) => only({ do: 'update', table: 'jobs', id: `j${n}`, expect: 1, row: { name: 'same' } })),
      )
      expect([winners(all), losersSay(all)]).toEqual([1, new Set(['0 name_taken'])])
    })

    test('remove of one version: one winner', async () => {
      await store.apply(only(insertJob('a')))
      const all = await race(
        where,
        sixteen.map(() => only({ do: 'remove', table: 'jobs', id: 'a', expect: 1 })),
      )
      expect(winners(all)).toBe(1)
      expect([...losersSay(all)].every((said) => said === '0 missing' || said === '0 version')).toBe(true)
    })

    test('must against an update of its row: never both', async () => {
      // each needs its own row unchanged and changes the other's: of a pair, at most one can be right
      await store.apply(only(...sixteen.map((n) => insertJob(`j${n}`))))
      const crossed = (mine: number, other: number): Transaction =>
        only(
          { do: 'must', table: 'jobs', id: `j${mine}`, version: 1 },
          { do: 'update', table: 'jobs', id: `j${other}`, expect: 1, row: { lastToken: 1 } },
        )
      const all = await race(
        where,
        sixteen.map((n) => crossed(n, n ^ 1)),
      )
      expect(winners(all)).toBe(8)
      const rows = await Promise.all(sixteen.map((n) => store.get('jobs', `j${n}`)))
      for (const n of [0, 2, 4, 6, 8, 10, 12, 14])
        expect([rows[n]?.version, rows[n + 1]?.version].sort()).toEqual([1, 2])
    })

    test('J-NEVER-4 add: a cap is never passed, and what was refused was not added', async () => {
      await store.apply(only({ do: 'insert', table: 'connections', row: connection('c', { capMicros: 100 }) }))
      const add: Change = { do: 'add', table: 'connections', id: 'c', micros: 10, withinCap: true }
      const all = await race(
        where,
        sixteen.map((n) => only(insertJob(`j${n}`), add)),
      )
      expect([winners(all), losersSay(all)]).toEqual([10, new Set(['1 cap'])])
      expect(await store.get('connections', 'c')).toMatchObject({ committedMicros: 100 })
      expect(await store.jobs({})).toHaveLength(10)
    })

    test('transactions that take the same rows in opposite order are all applied or refused, never lost', async () => {
      await store.apply(only(insertJob('a'), insertJob('b')))
      const touch = (id: string): Change => ({ do: 'update', table: 'jobs', id, expect: 1, row: { lastSlot: 1 } })
      const all = await race(
        where,
        sixteen.map((n) => only(...(n % 2 ? [touch('a'), touch('b')] : [touch('b'), touch('a')]))),
      )
      expect([winners(all), losersSay(all)]).toEqual([1, new Set(['0 version'])])
    })

    test('a reader that pages by the last number it saw misses no event', async () => {
      const writing = race(
        where,
        Array.from({ length: 160 }, (_, n) => ({
          changes: [insertJob(`j${n}`)],
          events: [event('a', { n }), event('b')],
        })),
      )
      const seen: number[] = []
      while (seen.length < 320) {
        const page = await store.events(seen.at(-1) ?? 0, { limit: 7 })
        seen.push(...page.map(({ seq }) => seq))
        if (page.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      }
      await writing
      expect(seen).toEqual(Array.from({ length: 320 }, (_, n) => n + 1))
    })
  })

  test('what was written is there after it was closed and opened again; closed twice is no error', async () => {
    await store.apply({ changes: [insertJob('a')], events: [event('a')] })
    await store.close()
    await store.close()
    await expect(store.get('jobs', 'a')).rejects.toMatchObject({ code: 'store_closed' })
    await expect(store.apply(only(insertJob('b')))).rejects.toMatchObject({ code: 'store_closed' })
    const again = await openStore(where)
    expect(await again.get('jobs', 'a')).toMatchObject({ id: 'a' })
    expect(await again.apply({ changes: [], events: [event('a')] })).toEqual({ is: 'applied', seq: 2 })
    await again.close()
  })

  test('eight that open an empty store at once all find one schema', async () => {
    const fresh = await place()
    const stores = await Promise.all(Array.from({ length: 8 }, () => openStore(fresh)))
    const all = await Promise.all(stores.map((one, n) => one.apply(only(insertJob(`j${n}`)))))
    expect(all).toEqual(Array.from({ length: 8 }, () => applied))
    await Promise.all(stores.map((one) => one.close()))
  })
})
