import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { minute, second } from '../time/index.ts'
import { orderFor } from './orders.ts'
import { aJob, anAttempt, now, type JobBuilder } from './testing.ts'
import { attemptOf } from './world.ts'

const order = (job: JobBuilder, token: number) => {
  const world = job.build()
  const attempt = attemptOf(world, token)
  if (!attempt) throw new Error(`no attempt ${token}`)
  return orderFor(world.job, attempt, world.move, 'key')
}

describe('what an attempt should be doing', () => {
  test.each([
    ['a machine that is only intended', aJob().starting('intended'), 1, null],
    ['one that was started and has not checked in', aJob().starting('started'), 1, null],
    ['the current one', aJob().running(), 1, { do: 'run', slot: null, aborted: null, lastSlot: 0 }],
    [
      'the current one that came from a checkpoint',
      aJob()
        .suspended()
        .attempt(2, { from: 3 })
        .in({ is: 'running', since: now, unreachableSince: null })
        .with({ current: 2 }),
      2,
      { do: 'run', slot: 3, lastSlot: 3 },
    ],
    ['J-SAFE-1 a source that is probed', aJob().moving('probe'), 1, { do: 'probe', move: 'm1' }],
    ['J-SAFE-1 a source while its target is rented', aJob().moving('target'), 1, { do: 'probe', move: 'm1' }],
    [
      'J-SAFE-1 a source that is to be held',
      aJob().moving('hold'),
      1,
      { do: 'hold', move: 'm1', holdFor: 10 * minute, safePointWait: 10 * minute },
    ],
    ['J-SAFE-1 a source while its target restores', aJob().moving('restore'), 1, { do: 'hold', move: 'm1' }],
    ['J-SAFE-1 a source that is asked for its promise', aJob().moving('promise'), 1, { do: 'promise', move: 'm1' }],
    ['J-SAFE-1 a source while the chain is sealed', aJob().moving('seal'), 1, { do: 'promise', move: 'm1' }],
    [
      'J-SAFE-3 a source whose suspension is committed',
      aJob().suspending('committed'),
      1,
      { do: 'kill-held', move: 'm1' },
    ],
    ['a target before there is anything to restore', aJob().moving('hold'), 2, null],
    ['J-SAFE-1 a target that is to restore', aJob().moving('restore'), 2, { do: 'prepare', slot: 4 }],
    [
      'J-SAFE-1 a target waits restored until the outcome is written',
      aJob().moving('seal'),
      2,
      { do: 'prepare', slot: 4 },
    ],
    ['J-RES-1 a resume’s machine restores first', aJob().resuming(2), 2, { do: 'prepare', slot: 3 }],
    [
      'J-SAFE-1 after an abort the source is told whose end frees it, and the slot behind the seal',
      aJob().running().with({ abortedMove: 'm0', lastSlot: 5 }),
      1,
      { do: 'run', aborted: 'm0', lastSlot: 5 },
    ],
    [
      'J-STOP-1 a stop',
      aJob().running().wishes('stop').with({ lastSlot: 5 }),
      1,
      { do: 'stop', grace: 30 * second, save: true, lastSlot: 5 },
    ],
    [
      'J-STOP-1 a stop without a checkpoint',
      aJob().running().wishes('stop', { keep: false }),
      1,
      { do: 'stop', save: false },
    ],
    [
      'J-LOOP-5 a stop waits for the move’s outcome: the order changes with the abort',
      aJob().moving('hold').wishes('stop'),
      1,
      { do: 'hold', move: 'm1' },
    ],
    [
      'J-LOOP-5 a stop after a suspension was committed',
      aJob().suspending('committed').wishes('stop'),
      1,
      { do: 'kill-held', move: 'm1' },
    ],
    [
      'a wish to suspend is nothing to an agent before a suspension is begun',
      aJob().running().wishes('suspend'),
      1,
      { do: 'run' },
    ],
    ['one that was let go', aJob().running().attempt(1, { state: 'ending' }).with({ current: null }), 1, { do: 'end' }],
    ['one that is gone', aJob().suspended(), 1, { do: 'end' }],
    ['bound, and nothing is known for it to do', aJob().running().attempt(2, { ranFrom: null }), 2, null],
  ] as const)('%s', (_, job, token, expected) => {
    expect({ order: order(job, token) }).toMatchObject({ order: expected })
  })

  test('what is needed to start goes along with every order that may start it', () => {
    expect(order(aJob().resuming(2), 2)).toMatchObject({
      start: { jobId: 'job', jobName: 'train', command: ['python3', 'train.py'], key: 'key', lastSlot: 3 },
    })
  })

  const states = ['intended', 'started', 'ready', 'bound', 'ending', 'gone'] as const
  const steps = ['probe', 'target', 'hold', 'restore', 'promise', 'seal', 'committed'] as const
  const builders = fc.oneof(
    fc.constantFrom(...steps).map((step) => () => aJob().moving(step)),
    fc.constantFrom(...steps).map((step) => () => aJob().suspending(step)),
    fc.constantFrom(
      () => aJob(),
      () => aJob().starting('started'),
      () => aJob().running(),
      () => aJob().suspended(),
      () => aJob().resuming(2),
    ),
  )

  test('nothing is ordered before it is recorded: only an attempt that is bound and current may run, only a bound one may restore', () => {
    fc.assert(
      fc.property(builders, fc.constantFrom(...states), fc.integer({ min: 1, max: 3 }), (make, state, token) => {
        const job = make()
        const world = job.attempt(token, { state }).build()
        const want = orderFor(world.job, attemptOf(world, token) ?? anAttempt(token), world.move, 'key')
        if (want === null || want.do === 'end') return
        const { current } = world.job
        const decided = world.move?.source === token ? world.move.outcome : 'none'
        expect([state, want.do === 'prepare' ? current !== token : current === token]).toEqual(['bound', true])
        expect(want.do === 'kill-held').toBe(decided === 'committed')
        expect(want.do === 'run' && decided === null).toBe(false)
      }),
    )
  })

  test('the same records give the same order, whatever is seen', () => {
    fc.assert(
      fc.property(builders, fc.integer({ min: 1, max: 2 }), fc.boolean(), (make, token, connected) => {
        const plain = make().attempt(token).build()
        const seen = make()
          .attempt(token)
          .sees(token, { connected, report: null, leaseEnds: now - 1, machine: null })
          .provider(token, 'terminal', now)
          .build()
        const attempt = (world: typeof plain) => attemptOf(world, token) ?? anAttempt(token)
        expect(orderFor(seen.job, attempt(seen), seen.move, 'key')).toEqual(
          orderFor(plain.job, attempt(plain), plain.move, 'key'),
        )
      }),
    )
  })
})
