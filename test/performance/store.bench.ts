/**
 * What the store costs: `node test/performance/store.bench.ts [ROWS] [--json]`, ROWS suspended jobs (1,000,000 where
 * none are given).
 *
 * Seen on 2 cores with a virtual disk (write 4 KiB and fdatasync: 0.2-0.6 ms), Node 24.21, PostgreSQL 15, medians in ms:
 *
 *                                       SQLite in memory   SQLite in a file   PostgreSQL, fsync off
 *   apply: 3 changes, 2 events                     0.037              0.230               0.95-1.44
 *   get                                            0.006              0.007                    0.09
 *   with 1,000,000 suspended jobs (written in)                       16.6 s                     111.5 s
 *   nextDue                                                           0.002                       0.109
 *   jobsDue, none due                                                 0.013                       0.127
 *   jobsDue, 100 due                                                  1.021                       1.407
 *   attemptsAlive, 200 alive                                          0.481                       0.736
 *   jobs not ended, newest 50                                         0.183                       0.357
 *   jobByName                                                         0.010                       0.138
 *   open (no look through a file this large)                          6.672
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type Change, type Store } from '../../src/store/index.ts'
import { startPostgres, whyNoPostgres } from '../support/postgres.ts'
import { anyReason, attempt, connection, event, job } from '../support/records.ts'
import { numbers, quantile, tell, told, type Row } from './rows.ts'

const [asleepRows = 1_000_000] = numbers()
const rows: Row[] = []
let where = ''
const now = 1_800_000_000_000
const day = 86_400_000
const rounds = 200

async function measure(what: string, act: (n: number) => unknown, times = rounds): Promise<void> {
  const took: number[] = []
  for (let n = 0; n < times; n++) {
    const started = performance.now()
    await act(n)
    took.push(performance.now() - started)
  }
  const [median, late] = [0.5, 0.95].map((q) => quantile(took, q).toFixed(3))
  rows.push(told(`${where}: ${what}`, `${median} ms (95 of 100 within ${late} ms)`))
}

/** One step of a job: its row, its attempt, the money, and what is told of it. */
const step = (store: Store, n: number, prefix: string) =>
  store.apply({
    changes: [
      { do: 'update', table: 'jobs', id: `${prefix}${n}`, expect: 1, row: { lastToken: 1, due: now + n } },
      { do: 'insert', table: 'attempts', row: attempt(`${prefix}${n}`, 1) },
      { do: 'add', table: 'connections', id: 'c', micros: 1, withinCap: true },
    ],
    events: [event(`${prefix}${n}`, { n }), event(`${prefix}${n}`, { n })],
  })

async function applies(store: Store): Promise<void> {
  const jobs = Array.from({ length: rounds }, (_, n): Change => ({ do: 'insert', table: 'jobs', row: job(`s${n}`) }))
  await store.apply({ changes: [...jobs, { do: 'insert', table: 'connections', row: connection('c') }], events: [] })
  await measure('apply: 3 changes, 2 events', (n) => step(store, n, 's'))
  await measure('get', (n) => store.get('jobs', `s${n}`))
}

async function asleep(store: Store): Promise<void> {
  const started = performance.now()
  const atOnce = 1000
  for (let from = 0; from < asleepRows; from += atOnce) {
    const changes = Array.from({ length: Math.min(atOnce, asleepRows - from) }, (_, n): Change => {
      const since = now - from - n
      const state = { is: 'suspended', since, by: { person: 'ann' }, why: anyReason, expiresAt: now + day } as const
      const row = job(`z${from + n}`, { state, createdAt: since, due: now + day + from + n })
      return { do: 'insert', table: 'jobs', row }
    })
    await store.apply({ changes, events: [] })
  }
  const seconds = (performance.now() - started) / 1000
  rows.push(told(`${where}: ${asleepRows} suspended jobs written`, `${seconds.toFixed(1)} s`))
  await measure('nextDue', () => store.nextDue())
  await measure('jobsDue, none due', () => store.jobsDue(now, 100))
  await measure('jobsDue, 100 of them due', () => store.jobsDue(now + day + 99, 300))
  await measure('attemptsAlive, 200 of them alive', () => store.attemptsAlive())
  await measure('jobs not ended, newest 50', () => store.jobs({ ended: false, limit: 50 }))
  await measure('jobByName', (n) => store.jobByName(`z${n}`))
  await measure('jobsByPrefix, 10 of them', (n) => store.jobsByPrefix(`z${n}`, 10))
}

const folder = mkdtempSync(join(tmpdir(), 'portal-bench-'))
try {
  where = 'the disk'
  const probe = openSync(join(folder, 'probe'), 'w')
  await measure('write 4 KiB and fdatasync', () => {
    writeSync(probe, Buffer.alloc(4096))
    fdatasyncSync(probe)
  })
  closeSync(probe)

  where = 'SQLite in memory'
  const memory = await openStore(':memory:')
  await applies(memory)
  await memory.close()

  where = 'SQLite in a file'
  const file = await openStore(join(folder, 'portal.db'))
  await applies(file)
  await asleep(file)
  await file.close()
  await measure('open', async () => (await openStore(join(folder, 'portal.db'))).close(), 20)

  const missing = whyNoPostgres()
  if (missing !== null) rows.push(told('PostgreSQL', `left out: ${missing}`))
  else {
    where = 'PostgreSQL on this machine, its fsync off'
    const postgres = await startPostgres()
    const store = await openStore(await postgres.database())
    await applies(store)
    await asleep(store)
    await store.close()
    await postgres.stop()
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
tell(rows)
