import { describe, expect, test } from 'vitest'
import { hour, minute } from '../../time/index.ts'
import { aJob, now, type JobBuilder } from '../testing.ts'
import { lease } from './lease.ts'

const decide = (job: JobBuilder) => lease.decide(job.build(), now)
const asks = (job: JobBuilder, token = 1): JobBuilder => job.sees(token, { renewAsked: `n${token}` })

describe('lease', () => {
  test.each([
    ['J-LEASE-1 nobody asks', aJob().running(), null],
    ['J-LEASE-1 the machine asks', asks(aJob().running()), 'job.1'],
    [
      'J-LEASE-1 a move’s target asks: it needs one before it may start anything',
      asks(aJob().moving('hold'), 2),
      'job.2',
    ],
    ['J-LEASE-1 while it is suspended the source still needs one', asks(aJob().suspending('hold')), 'job.1'],
    ['J-LEASE-1 a resume’s machine asks', asks(aJob().resuming(2), 2), 'job.2'],
    ['not bound yet: a machine that is not this row’s gets none', asks(aJob().starting('started')), null],
    ['J-LEASE-1 given up: none any more', asks(aJob().running().attempt(1, { state: 'ending' })), null],
    ['gone: none any more', asks(aJob().suspended()), null],
    [
      'detached: asked for and granted all the same, for the agent waits for an answer',
      asks(aJob().running().settings({ leaseLength: 'detached' })),
      'job.1',
    ],
  ] as const)('%s', (_, job, attempt) => {
    const verdict = decide(job)
    expect(verdict.kind === 'act' && verdict.act.do === 'renew' ? verdict.act.attempt : null).toBe(attempt)
  })

  test('the answer carries the nonce: the machine counts from when it asked with it', () => {
    expect(decide(asks(aJob().running()))).toMatchObject({
      act: { do: 'renew', nonce: 'n1' },
      why: { facts: { length_ms: hour } },
    })
  })

  test('of two that ask one is answered at a time', () => {
    expect(decide(asks(asks(aJob().moving('hold')), 2))).toMatchObject({ act: { attempt: 'job.1' } })
  })

  test.each([
    [
      'how far its hard stop is away',
      aJob()
        .running()
        .sees(1, { leaseEnds: now + 20 * minute }),
      'lease.fresh',
      20 * minute,
    ],
    [
      'a hard stop that has passed is no negative number',
      aJob()
        .running()
        .sees(1, { leaseEnds: now - minute }),
      'lease.fresh',
      0,
    ],
    ['no machine', aJob().suspended(), 'machine.none', undefined],
    [
      'detached',
      aJob().running().settings({ leaseLength: 'detached' }).sees(1, { leaseEnds: null }),
      'lease.detached',
      undefined,
    ],
  ] as const)('with nothing to do it says %s', (_, job, code, left) => {
    expect(decide(job).why).toMatchObject({ code, ...(left !== undefined && { facts: { left_ms: left } }) })
  })

  test('every number in its reasons can be written down: none is infinite', () => {
    for (const job of [aJob().running(), asks(aJob().running()), aJob().suspended(), aJob()])
      for (const length of [hour, 'detached'] as const)
        for (const fact of Object.values(decide(job.settings({ leaseLength: length })).why.facts))
          expect(fact).toSatisfy((one) => typeof one === 'string' || Number.isFinite(one))
  })
})
