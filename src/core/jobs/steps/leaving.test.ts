import { describe, expect, test } from 'vitest'
import { day, minute, second } from '../../time/index.ts'
import { aJob, anExit, anOwnedOffer, now, type JobBuilder } from '../testing.ts'
import { nextStep } from './index.ts'

const step = (job: JobBuilder) => nextStep(job.build(), now, (connection) => connection === 'desk')
const letGo = () =>
  aJob()
    .suspended()
    .attempt(1, { state: 'ending', goneAt: null })
    .silent(1, now - minute)
const owned = () => letGo().attempt(1, { offer: anOwnedOffer(), agentId: 'desk' })

describe('a rented machine that is let go', () => {
  test.each([
    ['is ended at once', letGo(), { do: 'end-machine' }],
    [
      'is ended again while its provider says that it lives',
      letGo().provider(1, 'alive', now - minute, now - 2 * second),
      { do: 'end-machine' },
    ],
    [
      'not more often than every two seconds',
      letGo().provider(1, 'alive', now - minute, now - second),
      { do: 'wait', until: now + second },
    ],
    ['is settled when its provider says that it has ended', letGo().provider(1, 'terminal', now), { do: 'settle' }],
    ['not found once is not gone', letGo().provider(1, 'not_found', now - minute), { do: 'wait' }],
    ['not found for five minutes is gone', letGo().provider(1, 'not_found', now - 5 * minute), { do: 'settle' }],
    [
      'its word does not come: it stays, however long',
      letGo().provider(1, 'unknown', now - 30 * day, now - minute),
      { do: 'end-machine' },
    ],
    [
      'J-LEASE-3 a lease that has run out does not settle it',
      letGo()
        .sees(1, { leaseEnds: now - day })
        .provider(1, 'alive', now, now),
      { do: 'wait' },
    ],
    [
      'a start that was never answered is looked for before it is settled',
      letGo().attempt(1, { machineId: null, startedAt: null }),
      { do: 'end-machine' },
    ],
    [
      'and stays while one look did not find it',
      letGo().attempt(1, { machineId: null, startedAt: null }).provider(1, 'not_found', now),
      { do: 'wait', until: now + 2 * second },
    ],
  ] as const)('%s', (_, job, expected) => {
    expect(step(job)).toMatchObject(expected)
  })
})

describe('J-NEVER-2 an owned machine is never ended; its job is gone', () => {
  test.each([
    [
      'when its agent says that it has ended',
      owned()
        .sees(1, { connected: true })
        .reports(1, { phase: 'ended', exit: anExit('ended') }),
      { do: 'settle' },
    ],
    [
      'when its agent has told all and does not know it any more',
      owned().sees(1, { connected: true, report: null }),
      { do: 'settle' },
    ],
    ['not while it runs there', owned().sees(1, { connected: true }).reports(1, { phase: 'running' }), { do: 'wait' }],
    ['not while its agent cannot be heard', owned(), { do: 'wait' }],
    [
      'J-SAFE-2 not when its agent was just told to begin and has said nothing of it yet',
      owned().sees(1, { connected: true, report: null, unanswered: true }),
      { do: 'wait' },
    ],
    [
      'J-LEASE-3 when its lease has run out by the control plane’s reckoning',
      owned().sees(1, { leaseEnds: now }),
      { do: 'settle' },
    ],
    ['J-LEASE-3 not a moment before', owned().sees(1, { leaseEnds: now + 1 }), { do: 'wait' }],
    [
      'J-LEASE-3 not where the machine could not promise to end it',
      owned()
        .sees(1, { leaseEnds: now - day })
        .machine(1, { confines: 'none' }),
      { do: 'wait' },
    ],
    ['J-LEASE-3 not where it is detached', owned().sees(1, { leaseEnds: null }), { do: 'wait' }],
    ['at once when it was never started', owned().attempt(1, { machineId: null, startedAt: null }), { do: 'settle' }],
  ] as const)('%s', (_, job, expected) => {
    expect(step(job)).toMatchObject(expected)
  })
})

test('machines that are to go come before whatever the job wants', () => {
  const job = aJob().running().attempt(2, { state: 'ending' }).wishes('suspend')
  expect(step(job)).toMatchObject({ do: 'end-machine' })
  expect(step(job.provider(2, 'alive', now, now))).toMatchObject({ do: 'begin-move' })
})

test('a job looks again at the soonest of what it waits for', () => {
  expect(step(aJob().running().attempt(2, { state: 'ending' }).provider(2, 'alive', now, now))).toMatchObject({
    do: 'wait',
    until: now + 2 * second,
  })
})
