import { describe, expect, test } from 'vitest'
import { day, hour, minute, second } from '../../time/index.ts'
import { aJob, anExit, now, type JobBuilder } from '../testing.ts'
import { nextStep } from './index.ts'

const step = (job: JobBuilder) => nextStep(job.build(), now, () => false)
const ended = (...exit: Parameters<typeof anExit>) =>
  aJob()
    .running()
    .reports(1, { phase: 'ended', exit: anExit(...exit) })
const silent = (ago: number) =>
  aJob()
    .running()
    .silent(1, now - ago)
const unreachable = (ago = minute) =>
  silent(ago).in({ is: 'running', since: now - 60 * minute, unreachableSince: now - ago })

describe('a job that runs', () => {
  test.each([
    ['nothing to do', aJob().running(), { do: 'wait', until: Infinity }],
    ['silent for a moment: not said yet', silent(10 * second), { do: 'wait', until: now + 5 * second }],
    ['J-LOST-1 silent for longer: it says so', silent(15 * second), { do: 'unreachable', since: now - 15 * second }],
    [
      'J-LOST-1 heard again: it says that too',
      aJob()
        .running()
        .in({ is: 'running', since: now, unreachableSince: now - minute }),
      { do: 'unreachable', since: null },
    ],
    ['J-LOST-1 its provider is asked what became of it', unreachable(), { do: 'observe' }],
    [
      'J-LOST-1 asked a moment ago',
      unreachable().provider(1, 'alive', now, now - second),
      { do: 'wait', until: now + 4 * second },
    ],
    [
      'J-LEASE-3 unreachable is not dead: its provider says that it lives',
      unreachable(40 * minute).provider(1, 'alive', now - 40 * minute, now),
      { do: 'wait' },
    ],
    [
      'J-LEASE-3 nor when its provider does not answer',
      unreachable(40 * minute).provider(1, 'unknown', now - 40 * minute, now),
      { do: 'wait' },
    ],
    [
      'J-LEASE-3 its provider confirms that it is gone',
      unreachable().provider(1, 'terminal', now),
      { do: 'lost', proof: 'its provider says terminated' },
    ],
    [
      'J-LEASE-3 it is not found: once is no proof',
      unreachable().provider(1, 'not_found', now - 4 * minute, now),
      { do: 'wait' },
    ],
    [
      'J-LEASE-3 it was not found once, long ago, and was not asked about since',
      unreachable().provider(1, 'not_found', now - hour, now - hour),
      { do: 'observe' },
    ],
    [
      'J-LEASE-3 it is not found for five minutes',
      unreachable(6 * minute).provider(1, 'not_found', now - 5 * minute, now),
      { do: 'lost' },
    ],
    [
      'J-LEASE-3 its lease has run out by the control plane’s reckoning',
      unreachable().sees(1, { leaseEnds: now }),
      { do: 'lost', proof: 'its lease has run out' },
    ],
    [
      'J-LEASE-3 not yet',
      unreachable()
        .sees(1, { leaseEnds: now + 1 })
        .provider(1, 'unknown', now),
      { do: 'wait', until: now + 1 },
    ],
    [
      'J-LEASE-3 a machine that could not promise to end it: only on a person’s word',
      unreachable()
        .sees(1, { leaseEnds: now - minute })
        .machine(1, { confines: 'none' })
        .provider(1, 'unknown', now),
      { do: 'wait' },
    ],
    [
      'J-LEASE-3 detached: it has no lease that could run out',
      unreachable(100 * day)
        .sees(1, { leaseEnds: null })
        .provider(1, 'unknown', now),
      { do: 'wait' },
    ],
    [
      'a lease that has run out at a machine that is heard proves nothing',
      aJob()
        .running()
        .sees(1, { leaseEnds: now - minute }),
      { do: 'wait' },
    ],
    [
      'a checkpoint of its own becomes its base',
      aJob()
        .running()
        .reports(1, { saved: { slot: 4, at: now, bytes: 1, storedBytes: 1, took: 1 } }),
      { do: 'adopt', slot: 4 },
    ],
    [
      'a checkpoint that is known is not looked at again',
      aJob()
        .running()
        .with({ lastSlot: 4 })
        .reports(1, { saved: { slot: 4, at: now, bytes: 1, storedBytes: 1, took: 1 } }),
      { do: 'wait' },
    ],
    [
      'asked to suspend',
      aJob().running().wishes('suspend'),
      { do: 'begin-move', kind: 'suspension', why: { code: 'ask.suspend', facts: { by: 'ada' } } },
    ],
    [
      'asked to move',
      aJob().running().wishes('move', { on: 'cloud/eu' }),
      { do: 'begin-move', kind: 'move', on: 'cloud/eu', why: { code: 'ask.move' } },
    ],
    [
      'asked to suspend while its process is being started: it cannot be asked yet',
      aJob().running().wishes('suspend').reports(1, { phase: 'preparing' }),
      { do: 'wait' },
    ],
    [
      'asked to suspend, and nothing was reported yet',
      aJob().running().wishes('suspend').sees(1, { report: null }),
      { do: 'wait' },
    ],
    [
      'J-STOP-1 asked to stop before its agent heard that it was to begin: nothing is there that could end',
      aJob().running().wishes('stop').sees(1, { report: null }),
      { do: 'job-ended', state: { is: 'stopped', resumableUntil: null } },
    ],
    [
      'J-STOP-1 asked to stop while it begins: that is waited for',
      aJob().running().wishes('stop').sees(1, { report: null, unanswered: true }),
      { do: 'wait' },
    ],
    [
      'J-STOP-1 asked to stop: its order says so, and it ends with an exit',
      aJob().running().wishes('stop'),
      { do: 'wait' },
    ],
  ] as const)('%s', (_, job, expected) => {
    expect(step(job)).toMatchObject(expected)
  })
})

describe('a job whose process ended', () => {
  test.each([
    ['by itself, with 0', ended('exited'), { do: 'job-ended', state: { is: 'succeeded' } }],
    [
      'by itself, with 3',
      ended('exited', { code: 3 }),
      { do: 'job-ended', state: { is: 'failed', why: { code: 'end.exited', facts: { code: 3 } } } },
    ],
    [
      'J-OOM-2 killed with a checkpoint at hand: it goes on from that',
      ended('exited', { code: null, signal: 'SIGKILL' }).saved(),
      { do: 'lost', proof: 'its processes were killed' },
    ],
    [
      'J-OOM-2 killed with nothing saved: it failed by that',
      ended('exited', { code: null, signal: 'SIGKILL' }),
      { do: 'job-ended', state: { is: 'failed', why: { code: 'end.signal' } } },
    ],
    [
      'by a signal',
      ended('exited', { code: null, signal: 'SIGSEGV' }),
      { do: 'job-ended', state: { is: 'failed', why: { code: 'end.signal', facts: { signal: 'SIGSEGV' } } } },
    ],
    [
      'failed without a checkpoint: nothing to resume',
      ended('exited', { code: 1 }),
      { state: { resumableUntil: null } },
    ],
    [
      'failed with one: it can be resumed for a while',
      ended('exited', { code: 1 }).saved(),
      { state: { resumableUntil: now + 7 * day } },
    ],
    [
      'its command could not be started',
      ended('could-not-start', { error: 'the command trane was not found' }),
      {
        do: 'job-ended',
        state: { is: 'failed', why: { code: 'end.failed_start', facts: { error: 'the command trane was not found' } } },
      },
    ],
    [
      'J-STOP-1 it was asked to stop',
      ended('stopped').wishes('stop'),
      { do: 'job-ended', state: { is: 'stopped', by: { person: 'ada' } } },
    ],
    [
      'J-STOP-1 an end of its own in the moment before the stop is its end',
      ended('exited').wishes('stop'),
      { do: 'job-ended', state: { is: 'succeeded' } },
    ],
    [
      'J-LEASE-2 at the hard stop: the job itself did not end',
      ended('deadline'),
      { do: 'lost', proof: 'its machine ended it at the hard stop' },
    ],
    ['its machine ended it', ended('ended'), { do: 'lost', proof: 'its machine ended it' }],
    ['it was fenced', ended('superseded'), { do: 'lost' }],
    [
      'J-LOST-1 a save made at the hard stop and reported with it is taken first',
      ended('deadline').reports(1, { saved: { slot: 4, at: now, bytes: 1, storedBytes: 1, took: 1 } }),
      { do: 'adopt', slot: 4 },
    ],
    [
      'the rest of its log comes in first',
      ended('exited').reports(1, { logBytes: 10 }).sees(1, { logBytes: 9 }),
      { do: 'wait' },
    ],
    ['J-FILE-2 and its declared outputs', ended('exited').sees(1, { outputsIn: false }), { do: 'wait' }],
    [
      'an agent that goes silent meanwhile is waited for, for a while',
      ended('exited').sees(1, { outputsIn: false, connected: false, heardAt: now - 59 * second }),
      { do: 'wait', until: now + second },
    ],
    [
      'and then no longer',
      ended('exited').sees(1, { outputsIn: false, connected: false, heardAt: now - 60 * second }),
      { do: 'job-ended' },
    ],
  ] as const)('%s', (_, job, expected) => {
    expect(step(job)).toMatchObject(expected)
  })
})
