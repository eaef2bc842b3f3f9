import pino from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { aJob, now, type JobBuilder } from '../../core/jobs/testing.ts'
import { hour, minute, second } from '../../core/time/index.ts'
import { openStore, type Applied, type Store, type Transaction } from '../../store/index.ts'
import { Checks } from './checks.ts'
import type { Context } from './context.ts'
import type { Sights } from './world.ts'

let store: Store
let checks: Checks
let context: Context
let fails: boolean
beforeEach(async () => {
  store = await openStore(':memory:', () => now)
  checks = new Checks()
  fails = false
  const apply = async (transaction: Transaction): Promise<Applied> =>
    fails ? { is: 'unknown', error: 'no answer' } : store.apply(transaction)
  context = {
    store: Object.create(store, { apply: { value: apply } }) as Store,
    clock: { now: () => now },
    random: { letters: () => 'abcd' },
    log: pino({ level: 'silent' }),
    happened: () => {},
  } as unknown as Context
  const { version: _, ...row } = aJob().running().build().job
  await store.apply({ changes: [{ do: 'insert', table: 'jobs', row }], events: [] })
})
afterEach(() => store.close())

/** The loop looks, so long after it began. */
const look = async (job: JobBuilder, after: number): Promise<void> => {
  const world = job.build()
  await checks.look(context, {} as Sights, world, async () => world, now + after)
}
const kept = async (policy: string) =>
  (await store.decisionsOf('job', { limit: 100 }))
    .filter((one) => one.policy === policy)
    .map(({ outcome, why, count }) => [outcome, why.code, count])

describe('J-WHY-1 decisions as they are kept', () => {
  test('what every policy concluded is there after the first look', async () => {
    await look(aJob().running(), 0)
    expect(await kept('ttl')).toEqual([['rested', 'ttl.within', 1]])
    expect(await kept('spot')).toEqual([['rested', 'spot.quiet', 1]])
    expect(await kept('lease')).toEqual([['rested', 'lease.fresh', 1]])
  })

  test('equal ones in a row are one with a count, with the newest numbers; nothing is written for them', async () => {
    await look(aJob().running(), 0)
    const writes = (await store.get('jobs', 'job'))?.version
    for (const after of [minute, 2 * minute, 3 * minute]) await look(aJob().running(), after)
    expect(await kept('ttl')).toEqual([['rested', 'ttl.within', 1]])
    const live = checks.current('job').find(({ policy }) => policy === 'ttl')
    expect(live).toMatchObject({
      count: 4,
      firstAt: now,
      lastAt: now + 3 * minute,
      why: { facts: { ran_ms: hour + 3 * minute } },
    })
    expect((await store.get('jobs', 'job'))?.version).toBe(writes)
  })

  test('another one ends the row: its count is written with it', async () => {
    await look(aJob().running(), 0)
    await look(aJob().running(), minute)
    await look(aJob().running().settings({ spot: false }), 2 * minute)
    await look(aJob().running(), 3 * minute)
    expect(await kept('spot')).toEqual([
      ['rested', 'spot.quiet', 1],
      ['rested', 'spot.off', 1],
      ['rested', 'spot.quiet', 2],
    ])
  })

  test('counts that are in memory only are written when the control plane stops', async () => {
    for (const after of [0, second, 2 * second]) await look(aJob().running(), after)
    await checks.flush(context)
    expect(await kept('ttl')).toEqual([['rested', 'ttl.within', 3]])
    expect(checks.current('job')).toEqual([])
  })

  test('the next control plane goes on with the row that the one before left', async () => {
    await look(aJob().running(), 0)
    await look(aJob().running(), second)
    await checks.flush(context)
    checks = new Checks()
    await look(aJob().running(), minute)
    expect(await kept('ttl')).toEqual([['rested', 'ttl.within', 2]])
    expect(checks.current('job').find(({ policy }) => policy === 'ttl')?.count).toBe(3)
  })

  test('an explanation that could not be written is written at the next look', async () => {
    fails = true
    await look(aJob().running(), 0)
    expect(await kept('ttl')).toEqual([])
    fails = false
    await look(aJob().running(), second)
    expect(await kept('ttl')).toEqual([['rested', 'ttl.within', 1]])
  })

  test('J-LOOP-2 what came second is kept as outranked', async () => {
    const both = aJob()
      .running()
      .attempt(1, { ranFrom: now - 80 * hour })
      .with({ ttlFrom: now - 80 * hour, version: 1 })
      .noticed(1, now, now + minute)
    await look(both, 0)
    expect(await kept('ttl')).toEqual([['acted', 'ttl.over', 1]])
    expect(await kept('spot')).toEqual([['outranked', 'spot.notice', 1]])
  })

  test('J-LOOP-5 a notice does not take the place of a stop that is under way', async () => {
    await look(
      aJob()
        .running()
        .with({ version: 1 })
        .wishes('stop')
        .noticed(1, now, now + minute),
      0,
    )
    expect(await kept('spot')).toEqual([['outranked', 'spot.notice', 1]])
    expect((await store.get('jobs', 'job'))?.state.is).toBe('running')
  })

  test('a job that ended is not looked at', async () => {
    await look(aJob().stopped(), 0)
    expect(await store.decisionsOf('job', { limit: 10 })).toEqual([])
  })
})
