import fc from 'fast-check'
import { expect, test } from 'vitest'
import { check } from '../../decide.ts'
import { hour, minute, second } from '../../time/index.ts'
import { changesPlace, jobPolicies } from '../policies/index.ts'
import { aJob, anExit, anOwnedOffer, now, type JobBuilder } from '../testing.ts'
import { nextStep } from './index.ts'

const moveSteps = ['probe', 'target', 'hold', 'restore', 'promise', 'seal', 'committed'] as const
const attemptStates = ['intended', 'started', 'ready', 'bound', 'ending', 'gone'] as const
const kinds: fc.Arbitrary<() => JobBuilder> = fc.oneof(
  fc.constantFrom(...moveSteps).map((step) => () => aJob().moving(step)),
  fc.constantFrom(...moveSteps).map((step) => () => aJob().suspending(step)),
  fc.constantFrom<() => JobBuilder>(
    () => aJob(),
    () => aJob().starting('intended'),
    () => aJob().starting('started'),
    () => aJob().running(),
    () => aJob().suspended(),
    () => aJob().stopped(),
    () => aJob().resuming(),
    () => aJob().resuming(2),
  ),
)
const around = fc.constantFrom(-hour, -5 * minute, -15 * second, -5 * second, -1, 0, 1, 5 * second, hour)

/** A job in any state, with anything seen of its machines, at moments around those that mean something. */
const worlds = fc
  .record({
    make: kinds,
    wish: fc.constantFrom('suspend', 'move', 'stop', null),
    owned: fc.boolean(),
    token: fc.constantFrom(1, 2),
    state: fc.option(fc.constantFrom(...attemptStates), { nil: null }),
    connected: fc.boolean(),
    heard: around,
    ends: fc.option(around, { nil: null }),
    says: fc.constantFrom('alive', 'terminal', 'not_found', 'unknown', null),
    since: around,
    asked: around,
    exit: fc.constantFrom('exited', 'deadline', 'killed-held', 'stopped', null),
    noticed: fc.option(around, { nil: null }),
    due: around,
  })
  .map((drawn) => {
    const { token } = drawn
    const job = drawn.make().with({ due: now + drawn.due })
    if (!job.build().attempts.some((one) => one.token === token)) return job
    if (drawn.wish) job.wishes(drawn.wish)
    if (drawn.state) job.attempt(token, { state: drawn.state })
    if (drawn.owned) job.attempt(token, { offer: anOwnedOffer() })
    job.sees(token, {
      connected: drawn.connected,
      heardAt: now + Math.min(0, drawn.heard),
      leaseEnds: drawn.ends === null ? null : now + drawn.ends,
    })
    if (drawn.says) job.provider(token, drawn.says, now + Math.min(drawn.since, drawn.asked), now + drawn.asked)
    if (drawn.exit) job.reports(token, { phase: 'ended', exit: anExit(drawn.exit) })
    if (drawn.noticed !== null) job.noticed(token, now - minute, now + drawn.noticed)
    return job
  })

const owned = (connection: string) => connection === 'desk'

test('whatever is waited for lies ahead: no look ends with looking again at once', () => {
  fc.assert(
    fc.property(worlds, (job) => {
      const step = nextStep(job.build(), now, owned)
      expect(step.do === 'wait' ? step.until : Infinity).toBeGreaterThan(now)
      const { acts, lookAgainAt } = check(jobPolicies, job.build(), now, changesPlace)
      expect(acts.length > 0 ? Infinity : lookAgainAt).toBeGreaterThan(now)
    }),
    { numRuns: 2000 },
  )
})

test('J-LOOP-4 the same world gives the same step, and is not changed by being looked at', () => {
  fc.assert(
    fc.property(worlds, (job) => {
      const world = job.build()
      const before = structuredClone({ ...world, seen: null })
      expect(nextStep(world, now, owned)).toEqual(nextStep(world, now, owned))
      expect({ ...world, seen: null }).toEqual(before)
    }),
  )
})

test('J-SAFE-1 a machine is only ended when its row was let go', () => {
  fc.assert(
    fc.property(worlds, (job) => {
      const step = nextStep(job.build(), now, owned)
      const let_go = step.do === 'end-machine' || step.do === 'settle' ? step.attempt.state : 'ending'
      expect(let_go).toBe('ending')
    }),
  )
})
