import { describe, expect, test } from 'vitest'
import { hour, minute, second } from '../../time/index.ts'
import { aJob, aMachine, anExit, aSocket, now, type JobBuilder } from '../testing.ts'
import { nextStep } from './index.ts'

const step = (job: JobBuilder) => nextStep(job.build(), now, () => false)
const checkedIn = (job: JobBuilder, token = 1) => job.sees(token, { connected: true, machine: aMachine() })

describe('starting', () => {
  test.each([
    ['a queued job looks for a place', aJob(), { do: 'place', for: 'start' }],
    [
      'one that found none waits until it is due again',
      aJob().with({ due: now + minute }),
      { do: 'wait', until: now + minute },
    ],
    ['an intended machine is asked for', aJob().starting('intended'), { do: 'start' }],
    [
      'one that was started is waited for',
      aJob()
        .starting('started')
        .attempt(1, { startedAt: now - second }),
      { do: 'wait', until: now + 4 * second },
    ],
    [
      'its provider is asked about it while it does not check in: it may have ended while it booted',
      aJob().starting('started'),
      { do: 'observe' },
    ],
    [
      'and again after a while',
      aJob()
        .starting('started')
        .provider(1, 'alive', now - second, now - second),
      { do: 'wait', until: now + 4 * second },
    ],
    [
      'one that checked in becomes the job’s, and with the same write the current one',
      checkedIn(aJob().starting('started')),
      { do: 'bind', current: true },
    ],
    [
      'an agent that is connected and has not told all yet is waited for',
      aJob().starting('started').provider(1, 'alive', now).sees(1, { connected: false, machine: null }),
      { do: 'wait' },
    ],
    [
      'J-RUN-5 one that does not check in in time is given up, and the next offer is tried',
      aJob()
        .starting('started')
        .attempt(1, { startedAt: now - 10 * minute }),
      { do: 'give-up-start', tryNext: true, why: { code: 'start.timeout', facts: { waited_ms: 10 * minute } } },
    ],
    [
      'one that its provider says has ended is given up at once',
      aJob().starting('started').provider(1, 'terminal', now),
      { do: 'give-up-start', tryNext: true, why: { code: 'start.failed' } },
    ],
    [
      'one that was given up is replaced',
      aJob().starting('started').attempt(1, { state: 'gone' }),
      { do: 'place', for: 'start' },
    ],
    [
      'J-STOP-1 a stop before it has a place',
      aJob().wishes('stop'),
      { do: 'end-job', state: { is: 'stopped', resumableUntil: null } },
    ],
    [
      'J-STOP-1 a stop of a queued job does not wait until it is due',
      aJob()
        .with({ due: now + hour })
        .wishes('stop'),
      { do: 'end-job' },
    ],
    [
      'J-STOP-1 a stop while its machine comes up',
      aJob().starting('started').wishes('stop'),
      { do: 'end-job', state: { is: 'stopped' } },
    ],
  ] as const)('%s', (_, job, expected) => {
    expect(step(job)).toMatchObject(expected)
  })
})

describe('resuming', () => {
  const late = { boundAt: now - 5 * minute }
  test.each([
    ['J-RES-1 a place is looked for', aJob().resuming(), { do: 'place', for: 'resume' }],
    [
      'J-RES-1 --wait: it is looked for again when it is due',
      aJob()
        .resuming()
        .with({ due: now + minute }),
      { do: 'wait', until: now + minute },
    ],
    [
      'J-LEASE-3 not while the machine before it is not proven gone',
      aJob().resuming().attempt(1, { state: 'ending' }).silent(1, now),
      { do: 'end-machine' },
    ],
    [
      'J-LEASE-3 nor while its end is waited for',
      aJob()
        .resuming()
        .attempt(1, { state: 'ending' })
        .provider(1, 'alive', now - minute),
      { do: 'wait', until: now + second },
    ],
    [
      'J-LEASE-3 a target of an earlier move that never ran stands in nobody’s way',
      aJob()
        .resuming()
        .attempt(2, { state: 'ending', ranFrom: null })
        .provider(2, 'alive', now - minute),
      { do: 'place', for: 'resume' },
    ],
    [
      'J-RES-1 its machine is bound before it restores',
      checkedIn(aJob().resuming(2, 'started').sees(2, { report: null }), 2),
      { do: 'bind', current: false },
    ],
    ['J-RES-1 a restore is waited for', aJob().resuming(2), { do: 'wait', until: now + 4 * minute }],
    [
      'J-RES-1 restored and verified, it becomes the current one',
      aJob().resuming(2).reports(2, { phase: 'prepared' }),
      { do: 'commit-resume' },
    ],
    [
      'J-RES-1 its SDK ended it because it could not be restored: the reason is about to be told',
      aJob()
        .resuming(2)
        .reports(2, { exit: anExit('exited', { code: 75 }) }),
      { do: 'wait', until: now + 3 * second },
    ],
    [
      'J-RES-1 the reason does not come: it has failed all the same',
      aJob()
        .resuming(2)
        .reports(2, { exit: anExit('exited', { code: 75, at: now - 3 * second }) }),
      { do: 'give-up-start', tryNext: false },
    ],
    [
      'J-RES-1 a restore that failed leaves it what it was, the values named',
      aJob()
        .resuming(2)
        .reports(2, { restoreFailed: { slot: 3, refused: [aSocket], why: 'the hash is another' } }),
      {
        do: 'give-up-start',
        tryNext: false,
        refused: [aSocket],
        why: { code: 'move.restore_failed', facts: { error: 'the hash is another' } },
      },
    ],
    [
      'J-RES-1 a restore that takes too long',
      aJob().resuming(2).attempt(2, late),
      { do: 'give-up-start', tryNext: false },
    ],
    [
      'J-RES-1 prepared at the last moment',
      aJob().resuming(2).attempt(2, late).reports(2, { phase: 'prepared' }),
      { do: 'commit-resume' },
    ],
    [
      'J-RES-1 a process that ended before it was restored',
      aJob()
        .resuming(2)
        .reports(2, { exit: anExit('exited', { code: 2 }) }),
      { do: 'give-up-start', tryNext: false },
    ],
    [
      'J-RES-1 a machine that is being taken itself',
      aJob()
        .resuming(2)
        .noticed(2, now, now + minute),
      { do: 'give-up-start', tryNext: false },
    ],
    [
      'J-RES-1 a machine that is gone',
      aJob().resuming(2).provider(2, 'terminal', now),
      { do: 'give-up-start', tryNext: false },
    ],
    [
      'J-RES-1 a machine that went away before it was bound: the next one',
      aJob().resuming(2, 'started').sees(2, { connected: false, machine: null }).provider(2, 'terminal', now),
      { do: 'give-up-start', tryNext: true },
    ],
    ['one that was given up is replaced', aJob().resuming(2, 'gone'), { do: 'place', for: 'resume' }],
    [
      'J-STOP-1 a stop before it has a machine: it is stopped, and can be resumed',
      aJob().resuming().wishes('stop'),
      { do: 'end-job', state: { is: 'stopped', resumableUntil: now + 7 * 24 * hour } },
    ],
    [
      'J-STOP-1 a stop while it restores: its machine is let go first',
      aJob().resuming(2).wishes('stop'),
      { do: 'give-up-start', tryNext: false },
    ],
  ] as const)('%s', (_, job, expected) => {
    expect(step(job)).toMatchObject(expected)
  })
})
