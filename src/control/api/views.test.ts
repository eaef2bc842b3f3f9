import { expect, test } from 'vitest'
import { aBase, ada, aJob, now } from '../../core/jobs/testing.ts'
import { why } from '../../core/reasons.ts'
import { day, hour } from '../../core/time/index.ts'
import { inOneSentence, jobView } from './views.ts'

const warned = (job: ReturnType<typeof aJob>): readonly string[] =>
  jobView(job.build(), now).warnings.map(({ code }) => code)

test('J-RUN-7 a job on a machine that may be taken is warned about until it shows a way of carrying its state', () => {
  expect(warned(aJob().running().sees(1, { report: null }))).toEqual(['place.unguarded'])
  expect(warned(aJob().running().reports(1, { method: 'none' }))).toEqual(['place.unguarded'])
  expect(warned(aJob().running().reports(1, { method: 'sdk' }))).toEqual([])
  expect(warned(aJob().running().saved().reports(1, { method: 'none' }))).toEqual([])
})

test('J-WHY-2 why a job is where it is stands in one sentence, with what can be done about it', () => {
  const suspended = aJob()
    .saved()
    .in({
      is: 'suspended',
      since: now - hour,
      by: { policy: 'spot' },
      why: why('spot.notice', { offer: 'cloud/eu/a/small/spot', left_ms: 120_000 }),
      expiresAt: now + day,
    })
  expect(inOneSentence(suspended.build(), now)).toMatch(
    /^train is suspended since .*cloud\/eu\/a\/small\/spot.*`portal resume train`/,
  )

  const stopped = aJob()
    .with({ base: aBase() })
    .in({ is: 'stopped', since: now - hour, by: ada, why: why('ask.stop', { by: 'ada' }), resumableUntil: now + day })
  expect(inOneSentence(stopped.build(), now)).toMatch(/^train was stopped .* ago.*ada.*`portal resume train`/)
  // without a checkpoint there is nothing to go on from
  expect(inOneSentence(stopped.with({ base: null }).build(), now)).not.toContain('resume')

  expect(inOneSentence(aJob().running().build(), now)).toMatch(/^train runs at cloud\/eu\/a\/small\/spot .*attempt 1/)
  const unheard = aJob()
    .running()
    .in({ is: 'running', since: now - hour, unreachableSince: now - 60_000 })
  expect(inOneSentence(unheard.build(), now)).toMatch(/unheard for .*unreachable is not dead/)
  expect(inOneSentence(aJob().build(), now)).toMatch(/^train is queued since .*ada/)
})
