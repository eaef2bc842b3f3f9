import { describe, expect, test } from 'vitest'
import { minute, second } from '../../time/index.ts'
import { aJob, anExit, aSocket, now, type JobBuilder } from '../testing.ts'
import { nextStep } from './index.ts'

const step = (job: JobBuilder) => nextStep(job.build(), now, () => false)
const aborts = (code: string, facts: object = {}) => ({ do: 'abort', why: { code, facts } })
const before = ['probe', 'target', 'hold', 'restore', 'promise'] as const
const begun = (name: (typeof before)[number] | 'seal', ago: number) => ({ times: { [name]: now - ago } })
const probed = { move: 'm1', bytes: 8, refused: [], why: null }
const saveRefused = { move: 'm1', refused: [aSocket], why: 'refused', at: now }

describe('J-SAFE-1 a move, step by step', () => {
  test.each([
    ['the probe is waited for', aJob().moving('probe'), { do: 'wait', until: now + 10 * minute }],
    [
      'the state can be carried: a target is looked for',
      aJob().moving('probe').reports(1, { probe: probed }),
      { do: 'advance', to: 'target' },
    ],
    [
      'an answer to another move’s probe says nothing',
      aJob()
        .moving('probe')
        .reports(1, { probe: { ...probed, move: 'm0' } }),
      { do: 'wait' },
    ],
    [
      'a source that is held already cannot be asked, and need not be',
      aJob()
        .moving('probe')
        .reports(1, { phase: 'held', held: { move: null, slot: 4, logOffset: 0, because: 'notice' } }),
      { do: 'advance', to: 'target' },
    ],
    ['no target yet', aJob().moving('target'), { do: 'place', for: 'move' }],
    [
      'a target is asked for',
      aJob().moving('target').move({ target: 2 }).attempt(2, { state: 'intended' }),
      { do: 'start' },
    ],
    [
      'a target that checked in is bound, and not made current',
      aJob().moving('target').move({ target: 2 }).attempt(2, { state: 'started', ranFrom: null }),
      { do: 'bind', current: false },
    ],
    [
      'a target that is bound: now the source is held, and not before',
      aJob().moving('target').move({ target: 2 }).attempt(2, { ranFrom: null }),
      { do: 'advance', to: 'hold' },
    ],
    [
      'a target that came to nothing: another one',
      aJob().moving('target').move({ target: 2 }).attempt(2, { state: 'gone', ranFrom: null }),
      { do: 'place', for: 'move' },
    ],
    ['a save is waited for', aJob().moving('hold').reports(1, { phase: 'saving' }), { do: 'wait' }],
    [
      'held: its slot is what the target restores',
      aJob()
        .moving('hold')
        .reports(1, { phase: 'held', held: { move: 'm1', slot: 4, logOffset: 0, because: 'order' } }),
      { do: 'advance', to: 'restore', slot: 4 },
    ],
    [
      'held for another move: not yet for this one',
      aJob()
        .moving('hold')
        .reports(1, { phase: 'held', held: { move: 'm0', slot: 4, logOffset: 0, because: 'order' } }),
      { do: 'wait' },
    ],
    ['the restore is waited for', aJob().moving('restore'), { do: 'wait', until: now + 4 * minute }],
    [
      'a source that went silent is asked about: were it gone, nothing would be waited for',
      aJob()
        .moving('hold')
        .silent(1, now - minute),
      { do: 'observe', attempt: { token: 1 } },
    ],
    [
      'a target that went silent is asked about, while the source is held for it',
      aJob()
        .moving('restore')
        .silent(2, now - minute),
      { do: 'observe', attempt: { token: 2 } },
    ],
    [
      'restored and verified: the source is asked for its promise',
      aJob().moving('restore').reports(2, { phase: 'prepared' }),
      { do: 'advance', to: 'promise' },
    ],
    [
      'the promise is waited for',
      aJob().moving('promise').move(begun('promise', second)),
      { do: 'wait', until: now + 29 * second },
    ],
    [
      'promised: the chain is sealed',
      aJob().moving('promise').reports(1, { promised: 'm1', phase: 'promised' }),
      { do: 'advance', to: 'seal' },
    ],
    [
      'a promise for another move is none',
      aJob().moving('promise').move(begun('promise', second)).reports(1, { promised: 'm0' }),
      { do: 'wait' },
    ],
    ['sealed and committed in one step', aJob().moving('seal'), { do: 'seal-and-commit' }],
  ] as const)('%s', (_, job, expected) => {
    expect(step(job)).toMatchObject(expected)
  })
})

describe('J-SAFE-3 a suspension, step by step', () => {
  test.each([
    ['it needs no target', aJob().suspending('probe').reports(1, { probe: probed }), { do: 'advance', to: 'hold' }],
    [
      'held: the promise comes next',
      aJob()
        .suspending('hold')
        .reports(1, { phase: 'held', held: { move: 'm1', slot: 4, logOffset: 0, because: 'order' } }),
      { do: 'advance', to: 'promise', slot: 4 },
    ],
    [
      'a notice does not disturb it: it is what is wanted',
      aJob()
        .suspending('hold')
        .noticed(1, now, now + minute),
      { do: 'wait' },
    ],
    [
      'committed is not confirmed: its source still stands there',
      aJob().suspending('committed').provider(1, 'alive', now),
      { do: 'wait' },
    ],
    [
      'J-SAFE-3 the answer that it was killed while held',
      aJob()
        .suspending('committed')
        .reports(1, { exit: anExit('killed-held') }),
      { do: 'confirm-suspended' },
    ],
    [
      'J-SAFE-3 or that its machine ended it',
      aJob()
        .suspending('committed')
        .reports(1, { exit: anExit('deadline') }),
      { do: 'confirm-suspended' },
    ],
    [
      'killed from outside while it was held, with its machine: it has not run since',
      aJob()
        .suspending('committed')
        .reports(1, { exit: anExit('exited', { code: null, signal: 'SIGKILL' }) }),
      { do: 'confirm-suspended' },
    ],
    [
      'an end of its own from before the hold wins',
      aJob()
        .suspending('committed')
        .reports(1, { exit: anExit('exited') }),
      { do: 'job-ended', state: { is: 'succeeded' } },
    ],
    [
      'its provider proves that it is gone',
      aJob().suspending('committed').silent(1, now).provider(1, 'terminal', now),
      { do: 'confirm-suspended' },
    ],
    [
      'unreachable is not gone: its provider is asked',
      aJob()
        .suspending('committed')
        .silent(1, now - minute),
      { do: 'observe' },
    ],
    [
      'a moment of silence is not asked about',
      aJob()
        .suspending('committed')
        .silent(1, now - second),
      { do: 'wait', until: now + 14 * second },
    ],
    [
      'its lease has run out',
      aJob()
        .suspending('committed')
        .silent(1, now - minute)
        .sees(1, { leaseEnds: now - 1 }),
      { do: 'confirm-suspended' },
    ],
    [
      'J-LEASE-3 a lease of a machine that could not promise anything',
      aJob()
        .suspending('committed')
        .silent(1, now - minute)
        .sees(1, { leaseEnds: now - 1 })
        .machine(1, { confines: 'none' })
        .provider(1, 'unknown', now),
      { do: 'wait' },
    ],
  ] as const)('%s', (_, job, expected) => {
    expect(step(job)).toMatchObject(expected)
  })
})

describe('what aborts a move before its commit; its source runs on', () => {
  test.each([
    [
      'J-STRICT-1 a value that cannot be carried is named',
      aJob()
        .moving('probe')
        .reports(1, { probe: { ...probed, refused: [aSocket] } }),
      { ...aborts('move.refused', { count: 1, first: 'state.sock' }), refused: [aSocket] },
    ],
    [
      'J-STRICT-1 also when it is found while saving',
      aJob().moving('hold').reports(1, { saveRefused }),
      { ...aborts('move.refused'), refused: [aSocket] },
    ],
    [
      'J-STRICT-1 a suspension too',
      aJob()
        .suspending('probe')
        .reports(1, { probe: { ...probed, refused: [aSocket] } }),
      aborts('move.refused'),
    ],
    [
      'J-STRICT-1 a job without a way to be carried',
      aJob()
        .moving('probe')
        .reports(1, { probe: { ...probed, why: 'it has not called portal.job()' } }),
      aborts('move.no_way'),
    ],
    [
      'a refusal of an earlier move is not this one’s',
      aJob()
        .moving('hold')
        .reports(1, { saveRefused: { ...saveRefused, move: 'm0' } }),
      { do: 'wait' },
    ],
    [
      'a save that failed',
      aJob()
        .moving('hold')
        .reports(1, { saveRefused: { ...saveRefused, refused: [], why: 'no space left' } }),
      aborts('move.save_failed', { error: 'no space left' }),
    ],
    [
      'no safe point in time',
      aJob()
        .moving('probe')
        .move(begun('probe', 11 * minute)),
      aborts('move.safe_point'),
    ],
    [
      'a save that takes for ever',
      aJob()
        .moving('hold')
        .move(begun('hold', 21 * minute)),
      aborts('move.timeout', { step: 'hold' }),
    ],
    [
      'a restore that takes for ever',
      aJob()
        .moving('restore')
        .move(begun('restore', 5 * minute)),
      aborts('move.timeout', { step: 'restore' }),
    ],
    [
      'a promise that does not come',
      aJob()
        .moving('promise')
        .move(begun('promise', 30 * second)),
      aborts('move.timeout', { step: 'promise' }),
    ],
    [
      'a restore that failed, its values named',
      aJob()
        .moving('restore')
        .reports(2, { restoreFailed: { slot: 4, refused: [aSocket], why: 'another interpreter' } }),
      { ...aborts('move.restore_failed', { error: 'another interpreter' }), refused: [aSocket] },
    ],
    ['a target that died', aJob().moving('restore').provider(2, 'terminal', now), aborts('move.restore_failed')],
    [
      'a target whose process ended',
      aJob()
        .moving('restore')
        .reports(2, { exit: anExit('exited', { code: 1 }) }),
      aborts('move.restore_failed'),
    ],
    [
      'J-LOOP-5 a notice at the target',
      aJob()
        .moving('restore')
        .noticed(2, now, now + minute),
      aborts('move.notice_at_target'),
    ],
    [
      'J-LOOP-5 a notice at the source of a move: a suspension takes its place',
      aJob()
        .moving('hold')
        .noticed(1, now, now + minute),
      aborts('spot.notice', { left_ms: minute }),
    ],
    [
      'the source ran on by itself',
      aJob()
        .moving('promise')
        .reports(1, { voided: ['m1'] }),
      aborts('move.voided'),
    ],
    [
      'it ran on from another move: nothing of this one’s',
      aJob()
        .moving('hold')
        .reports(1, { voided: ['m0'] }),
      { do: 'wait' },
    ],
    [
      'the source is proven gone',
      aJob()
        .moving('restore')
        .silent(1, now - minute)
        .provider(1, 'terminal', now),
      aborts('move.source_lost'),
    ],
    [
      'the source’s lease has run out',
      aJob()
        .moving('restore')
        .silent(1, now - minute)
        .sees(1, { leaseEnds: now - 1 }),
      aborts('move.source_lost'),
    ],
  ] as const)('%s', (_, job, expected) => {
    expect(step(job)).toMatchObject(expected)
  })

  test.each(before)('J-LOOP-5 a stop, at step %s', (name) => {
    expect(step(aJob().moving(name).wishes('stop'))).toMatchObject(aborts('move.stopped'))
    expect(step(aJob().suspending(name).wishes('stop'))).toMatchObject(aborts('move.stopped'))
  })

  test.each(before)('the job’s own end is its end, at step %s', (name) => {
    expect(
      step(
        aJob()
          .moving(name)
          .reports(1, { exit: anExit('exited') }),
      ),
    ).toMatchObject({ do: 'job-ended' })
  })

  test.each(before)('J-LEASE-3 a silent source alone aborts nothing before its time, at step %s', (name) => {
    const job = aJob()
      .moving(name)
      .silent(1, now - minute)
      .move(begun(name, second))
    expect(step(job).do).not.toBe('abort')
  })
})
