import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { day, hour, minute } from '../../time/index.ts'
import { aJob, now, type JobBuilder } from '../testing.ts'
import { ttl } from './ttl.ts'

/** A job that machines have run for so long, in one stay up to now. */
const ran = (ago: number): JobBuilder =>
  aJob()
    .running()
    .attempt(1, { ranFrom: now - ago })
    .with({ ttlFrom: now - ago })
const decide = (job: JobBuilder) => ttl.decide(job.build(), now)

describe('ttl', () => {
  test.each([
    ['J-TTL-1 72 hours are over', ran(72 * hour), 'ttl.over'],
    ['J-TTL-1 a moment before', ran(72 * hour - 1), 'ttl.within'],
    [
      'J-TTL-1 two stays of 36 hours add up, the time suspended between them does not',
      ran(36 * hour)
        .attempt(2, { state: 'gone', ranFrom: now - 90 * hour, ranUntil: now - 54 * hour })
        .with({ ttlFrom: now - 90 * hour }),
      'ttl.over',
    ],
    [
      'J-TTL-1 one hour less in the first stay',
      ran(36 * hour)
        .attempt(2, { state: 'gone', ranFrom: now - 90 * hour, ranUntil: now - 55 * hour })
        .with({ ttlFrom: now - 90 * hour }),
      'ttl.within',
    ],
    [
      'J-TTL-1 a move’s target that is only prepared does not count',
      ran(70 * hour).attempt(2, { ranFrom: null, boundAt: now - 10 * hour }),
      'ttl.within',
    ],
    ['J-TTL-1 a queued job', aJob().with({ ttlFrom: now - 100 * hour }), 'ttl.within'],
    [
      'J-TTL-1 while it moves it counts as before',
      aJob()
        .moving('hold')
        .attempt(1, { ranFrom: now - 73 * hour })
        .with({ ttlFrom: now - 73 * hour }),
      'ttl.over',
    ],
    [
      'J-TTL-2 suspended, 72 hours since its creation',
      aJob()
        .suspended()
        .with({ ttlFrom: now - 72 * hour }),
      'ttl.clock',
    ],
    [
      'J-TTL-2 suspended, a moment before',
      aJob()
        .suspended()
        .with({ ttlFrom: now - 72 * hour + 1 }),
      'ttl.clock_within',
    ],
    [
      'J-TTL-2 the count of running time does not touch a suspended job',
      aJob()
        .suspended()
        .with({ ttlFrom: now - 71 * hour })
        .attempt(1, { ranFrom: now - 71 * hour, ranUntil: now })
        .settings({ ttl: 71.5 * hour }),
      'ttl.clock_within',
    ],
    [
      'J-TTL-3 resumed after its limit ended it: only what ran since counts',
      ran(100 * hour).with({ ttlFrom: now - hour }),
      'ttl.within',
    ],
    [
      'J-TTL-4 a resume under way waits for its outcome',
      aJob()
        .resuming()
        .with({ ttlFrom: now - 100 * hour }),
      'ttl.within',
    ],
    ['J-RUN-4 turned off', ran(1000 * hour).settings({ ttl: 'off' }), 'ttl.off'],
    [
      'J-RUN-4 turned off, suspended',
      aJob()
        .suspended()
        .with({ ttlFrom: now - 1000 * hour })
        .settings({ ttl: 'off' }),
      'ttl.off',
    ],
  ] as const)('%s', (_, job, code) => {
    expect(decide(job).why.code).toBe(code)
  })

  test('J-TTL-3 a running job is stopped, J-TTL-2 a suspended one is ended as it is', () => {
    expect(decide(ran(72 * hour))).toMatchObject({ kind: 'act', act: { do: 'stop' } })
    expect(
      decide(
        aJob()
          .suspended()
          .with({ ttlFrom: now - 72 * hour }),
      ),
    ).toMatchObject({ kind: 'act', act: { do: 'end' } })
  })

  test('the numbers are in the reason', () => {
    expect(decide(ran(2 * hour)).why.facts).toEqual({ ran_ms: 2 * hour, ttl_ms: 72 * hour })
    expect(
      decide(
        aJob()
          .suspended()
          .with({ ttlFrom: now - 80 * hour }),
      ).why.facts,
    ).toEqual({
      age_ms: 80 * hour,
      ttl_ms: 72 * hour,
      keep_ms: 7 * day,
    })
  })

  test('J-TTL-1 however its stays are cut up, it is stopped when they add up to the limit, and looked at again then', () => {
    const stays = fc.array(fc.tuple(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 300 })), {
      minLength: 1,
      maxLength: 6,
    })
    fc.assert(
      fc.property(stays, (minutes) => {
        const job = aJob().running()
        let until = now
        let sum = 0
        minutes.forEach(([ranFor, pause], n) => {
          const from = until - ranFor * minute
          job.attempt(n + 1, { ranFrom: from, ranUntil: n === 0 ? null : until, state: n === 0 ? 'bound' : 'gone' })
          until = from - pause * minute
          sum += ranFor * minute
        })
        job.with({ ttlFrom: until })
        expect(ttl.decide(job.settings({ ttl: sum }).build(), now).kind).toBe('act')
        const within = ttl.decide(job.settings({ ttl: sum + minute }).build(), now)
        expect(within).toMatchObject({ kind: 'rest', lookAgainAt: now + minute })
      }),
    )
  })

  test('J-LOOP-4 the moment it says it looks again is the first at which it would act', () => {
    const job = ran(10 * hour).build()
    const { lookAgainAt } = ttl.decide(job, now)
    expect(ttl.decide(job, (lookAgainAt as number) - 1).kind).toBe('rest')
    expect(ttl.decide(job, lookAgainAt as number).kind).toBe('act')
  })
})
