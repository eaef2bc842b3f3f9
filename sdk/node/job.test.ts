import { expect, test } from 'vitest'
import portal from '../../package.json' with { type: 'json' }
import { VERSION } from './environment.js'
import { job as shared, type Portable, type PortableClass } from './index.js'
import { Job } from './job.js'

test('the SDK says the version of its package', () => {
  expect(VERSION).toBe(portal.version)
})

test('classes are registered before job.state, each under one name', async () => {
  class One {
    n = 1
  }
  const other = { One: class extends One {} }
  const job = new Job()
  job.classes(One)
  job.classes(One, { 'my.One': other.One, tag: Symbol('tag') })
  expect(() => job.classes(other.One)).toThrow('two classes called One')
  expect(() => job.classes({ Map: One })).toThrow('built-in')
  expect(() => job.classes({ bad: 1 as never })).toThrow('no class and no symbol')
  await job.state({ step: 0 })
  expect(() => job.classes(One)).toThrow('before job.state()')
})

test('a seeded generator gives the same numbers for the same seed, spread over the whole range', () => {
  const job = new Job()
  const [one, two, other] = [job.random('seed'), job.random('seed'), job.random('other')]
  const numbers = Array.from({ length: 10_000 }, () => one.next())
  expect(Array.from({ length: 10_000 }, () => two.next())).toEqual(numbers)
  expect(other.next()).not.toBe(numbers[0])
  expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true)
  expect(numbers.reduce((sum, number) => sum + number) / 10_000).toBeCloseTo(0.5, 1)
  expect(new Set(Array.from({ length: 1_000 }, () => one.integer(6))).size).toBe(6)
})

test('job.onSuspend and job.onStart take functions', () => {
  const job = new Job()
  expect(() => job.onSuspend(1 as never)).toThrow('takes a function')
  expect(() => job.onStart({} as never)).toThrow('takes a function')
})

test('what a script writes has its types, and outside Portal does nothing', async () => {
  class Money implements Portable<number> {
    cents = 0
    toPortal() {
      return this.cents
    }
    static fromPortal(data: number, live: Money | undefined): Money {
      return Object.assign(live ?? new Money(), { cents: data })
    }
  }
  const portable: PortableClass<number, Money> = Money
  shared.classes(Money, { tag: Symbol('tag') })
  const given = { step: 0, wallet: portable.fromPortal(5, undefined), random: shared.random(1) }
  const state = await shared.state(given)
  expect(state).toBe(given)
  const steps: number[] = [...shared.steps(state, 'step', 3)]
  for await (const step of shared.stepsAsync(state, 'step', 4)) steps.push(step)
  // @ts-expect-error a wallet is no step
  expect(() => shared.steps(state, 'wallet', 3)).toThrow('not a whole number')
  shared.checkpoint()
  shared.safePoint()
  shared.progress(1, 2)
  expect([steps, shared.attempt, shared.restored, shared.onStart(() => 'now')]).toEqual([[0, 1, 2, 3], 0, false, 'now'])
})
