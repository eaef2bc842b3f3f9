import pino from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { aJob, now } from '../../core/jobs/testing.ts'
import type { World } from '../../core/jobs/world.ts'
import { minute } from '../../core/time/index.ts'
import { openStore, type Store } from '../../store/index.ts'
import { Checks } from './checks.ts'
import type { Context } from './context.ts'
import type { Sights } from './world.ts'

let store: Store
beforeEach(async () => {
  store = await openStore(':memory:', () => now)
})
afterEach(() => store.close())

const noticed = (): World =>
  aJob()
    .running()
    .noticed(1, now, now + minute)
    .build()

/** Looks at a job as the loop does; what is read again is another world. */
const look = async (world: World, again: World | null) => {
  const { id: _id, version: _version, ...job } = world.job
  await store.apply({ changes: [{ do: 'insert', table: 'jobs', row: { id: 'job', ...job } }], events: [] })
  const context = {
    store,
    clock: { now: () => now },
    random: { letters: (count: number) => 'a'.repeat(count) },
    log: pino({ level: 'silent' }),
    happened: () => {},
  } as unknown as Context
  const checks = new Checks()
  // the row that was just made is at its first version
  const stored = (read: World): World => ({ ...read, job: { ...read.job, version: 1 } })
  const read = async (): Promise<World | null> => again && stored(again)
  const { did } = await checks.look(context, {} as Sights, stored(world), read, now)
  return { did, spot: await store.lastDecision('job', 'spot'), job: await store.get('jobs', 'job') }
}

test('J-LOOP-3 what a decision rests on is read again, and it is carried out if it still holds', async () => {
  const { spot, job } = await look(noticed(), noticed())
  expect(spot).toMatchObject({ outcome: 'acted', why: { code: 'spot.notice' } })
  expect(job?.state.is).toBe('suspending')
})

test('J-LOOP-3 a decision that does not hold any more is dropped, and recorded as such', async () => {
  for (const again of [aJob().running().build(), null]) {
    const { did, spot, job } = await look(noticed(), again)
    expect(did).toBe('again')
    expect(spot).toMatchObject({ outcome: 'dropped', why: { code: 'spot.notice' } })
    expect(job?.state.is).toBe('running')
    await store.close()
    store = await openStore(':memory:', () => now)
  }
})
