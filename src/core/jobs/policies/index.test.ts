import { describe, expect, test } from 'vitest'
import { check } from '../../decide.ts'
import { hour, second } from '../../time/index.ts'
import { aJob, now, type JobBuilder } from '../testing.ts'
import { changesPlace, jobPolicies } from './index.ts'

const acts = (job: JobBuilder) =>
  check(jobPolicies, job.build(), now, changesPlace).acts.map(({ policy, act }) => `${policy} ${act.do}`)
const noticed = (job: JobBuilder) => job.noticed(1, now - second, now + 30 * second)
const over = (job: JobBuilder) => job.attempt(1, { ranFrom: now - 80 * hour }).with({ ttlFrom: now - 80 * hour })
const asks = (job: JobBuilder) => job.sees(1, { renewAsked: 'n' })

describe('a job’s policies', () => {
  test('J-LOOP-2 are asked in this order', () => {
    expect(jobPolicies.map(({ name }) => name)).toEqual(['ttl', 'spot', 'lease'])
  })

  test.each([
    ['nothing is due', aJob().running(), []],
    ['J-LOOP-2 a time limit goes before a notice', over(noticed(aJob().running())), ['ttl stop']],
    [
      'J-LOOP-2 a notice and a lease that is asked for',
      asks(noticed(aJob().running())),
      ['spot suspend', 'lease renew'],
    ],
    ['J-LOOP-2 all three', asks(over(noticed(aJob().running()))), ['ttl stop', 'lease renew']],
  ] as const)('%s', (_, job, expected) => {
    expect(acts(job)).toEqual(expected)
  })

  test('J-LOOP-4 the same snapshot at the same time gives the same verdicts, and is not changed by being looked at', () => {
    const world = asks(over(noticed(aJob().moving('restore')))).build()
    const before = structuredClone({ ...world, seen: null })
    const once = check(jobPolicies, world, now, changesPlace)
    expect(check(jobPolicies, world, now, changesPlace)).toEqual(once)
    expect({ ...world, seen: null }).toEqual(before)
  })
})
