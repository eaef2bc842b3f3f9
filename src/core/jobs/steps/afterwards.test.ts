import { describe, expect, test } from 'vitest'
import { why } from '../../reasons.ts'
import { day, hour } from '../../time/index.ts'
import { aJob, now, type JobBuilder } from '../testing.ts'
import { nextStep } from './index.ts'

const step = (job: JobBuilder) => nextStep(job.build(), now, () => false)
const suspended = (expiresAt: number) =>
  aJob()
    .suspended()
    .in({
      is: 'suspended',
      since: now - hour,
      by: { person: 'ada' },
      why: why('ask.suspend', { by: 'ada' }),
      expiresAt,
    })
const failed = (resumableUntil: number | null) =>
  aJob()
    .suspended()
    .in({ is: 'failed', since: now - hour, why: why('expired', { keep_ms: day }), resumableUntil })

describe('a job of which nothing runs', () => {
  test.each([
    ['J-SUSP-1 its checkpoint is kept', suspended(now + 1), { do: 'wait', until: now + 1 }],
    [
      'J-SUSP-1 when its time is over the job fails, saying so',
      suspended(now),
      { do: 'end-job', state: { is: 'failed', why: { code: 'expired', facts: { keep_ms: 3 * day } } } },
    ],
    [
      'J-SUSP-1 and can be brought back for 24 hours more',
      suspended(now),
      { do: 'end-job', state: { resumableUntil: now + day } },
    ],
    [
      'J-STOP-1 a stop of a suspended job ends it, its checkpoint kept 7 days',
      suspended(now + hour).wishes('stop'),
      { do: 'end-job', state: { is: 'stopped', by: { person: 'ada' }, resumableUntil: now + 7 * day } },
    ],
    [
      'J-SUSP-1 while a resume could still bring it back nothing is removed',
      failed(now),
      { do: 'wait', until: now + day },
    ],
    [
      'J-SUSP-1 nor in the day after, in which a resume that was begun may be under way',
      failed(now - day + 1),
      { do: 'wait', until: now + 1 },
    ],
    ['J-SUSP-1 then its bytes go', failed(now - day), { do: 'expire' }],
    ['J-STOP-1 a stopped job’s too', aJob().stopped({ resumableUntil: now - day }), { do: 'expire' }],
    ['a checkpoint of a job that failed for good', failed(null), { do: 'wait', until: now - hour + day }],
    [
      'a job that succeeded needs none any more',
      aJob()
        .suspended()
        .in({ is: 'succeeded', since: now - day }),
      { do: 'expire' },
    ],
    [
      'without a checkpoint there is nothing to look at',
      failed(now - day).with({ base: null, lastSlot: 0 }),
      { do: 'wait', until: Infinity },
    ],
  ] as const)('%s', (_, job, expected) => {
    expect(step(job)).toMatchObject(expected)
  })
})
