import { describe, expect, test } from 'vitest'
import { minute, second } from '../../time/index.ts'
import { aJob, now, type JobBuilder } from '../testing.ts'
import { spot } from './spot.ts'

const noticed = (job: JobBuilder = aJob().running()): JobBuilder => job.noticed(1, now - second, now + 30 * second)
const refused = (ago: number, source = 1): JobBuilder => noticed().after({ source, times: { aborted: now - ago } })
const decide = (job: JobBuilder) => spot.decide(job.build(), now)

describe('spot', () => {
  test.each([
    ['no notice', aJob().running(), 'rest', 'spot.quiet'],
    ['J-SPOT-1 a notice', noticed(), 'act', 'spot.notice'],
    [
      'J-SPOT-1 a notice in the middle of a move: the policy asks for the same',
      noticed(aJob().moving('hold')),
      'act',
      'spot.notice',
    ],
    [
      'J-SPOT-1 a notice at a machine that cannot be heard any more',
      noticed().silent(1, now - minute),
      'act',
      'spot.notice',
    ],
    [
      'J-SPOT-1 a notice whose end has just passed: the machine may be there for a little longer',
      aJob()
        .running()
        .noticed(1, now - 5 * minute, now - minute),
      'act',
      'spot.notice',
    ],
    [
      'a notice that was over five minutes ago: the machine lives, it was withdrawn or wrong',
      aJob()
        .running()
        .noticed(1, now - 9 * minute, now - 5 * minute - 1),
      'rest',
      'spot.quiet',
    ],
    [
      'a notice at the target of a move is not the job’s',
      aJob()
        .moving('restore')
        .noticed(2, now, now + minute),
      'rest',
      'spot.quiet',
    ],
    ['J-RUN-4 turned off', noticed().settings({ spot: false }), 'rest', 'spot.off'],
    ['no machine: suspended', aJob().suspended(), 'rest', 'machine.none'],
    ['no machine yet', aJob(), 'rest', 'machine.none'],
    ['J-STRICT-2 refused a moment ago: it runs on, and is warned', refused(500), 'warn', 'spot.refused'],
    [
      'J-STRICT-2 refused five seconds ago: tried again, it may have closed what could not be carried',
      refused(5 * second),
      'act',
      'spot.notice',
    ],
    [
      'J-STRICT-2 refused a moment ago, by a machine whose clock is ahead',
      refused(500).noticed(1, now + minute, now + 2 * minute),
      'warn',
      'spot.refused',
    ],
    ['a refusal at another machine says nothing about this one', refused(500, 7), 'act', 'spot.notice'],
    [
      'a move that gave way to the notice is no refusal',
      noticed().after({ kind: 'move', times: { aborted: now } }),
      'act',
      'spot.notice',
    ],
    [
      'a suspension that went through is no refusal',
      noticed().after({ outcome: 'committed', times: { committed: now } }),
      'act',
      'spot.notice',
    ],
  ] as const)('%s', (_, job, kind, code) => {
    const verdict = decide(job)
    expect([verdict.kind, verdict.why.code]).toEqual([kind, code])
  })

  test('J-SPOT-1 it is suspended, with what is left in the reason', () => {
    expect(decide(noticed())).toMatchObject({
      act: { do: 'suspend' },
      why: { facts: { offer: 'cloud/eu/a/small/spot', left_ms: 30 * second } },
    })
    expect(
      decide(
        aJob()
          .running()
          .noticed(1, now - minute, now - 1),
      ).why.facts.left_ms,
    ).toBe(0)
  })

  test('J-STRICT-2 a refusal says when it is tried again', () => {
    expect(decide(refused(2 * second))).toMatchObject({ kind: 'warn', lookAgainAt: now + 3 * second })
  })
})
