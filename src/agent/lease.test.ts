import { assert, array, integer, property, record } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { jumpWatch } from './clock.ts'
import { Lease } from './lease.ts'

describe('J-LEASE-2 a lease', () => {
  test('ends a length after it was asked for, not after the answer came', () => {
    const lease = new Lease()
    const nonce = lease.ask(1000)
    expect(lease.granted(nonce, 60_000)).toBe(true)
    expect(lease.until).toBe(61_000)
  })

  test('an answer to an older request than one that was answered changes nothing, nor does the same one twice', () => {
    const lease = new Lease()
    const [older, newer] = [lease.ask(1000), lease.ask(2000)]
    lease.granted(newer, 60_000)
    expect(lease.granted(older, 90_000)).toBe(false)
    expect(lease.granted(newer, 90_000)).toBe(false)
    expect(lease.granted('made up', 90_000)).toBe(false)
    expect(lease.until).toBe(62_000)
  })

  test('a newer answer may shorten it', () => {
    const lease = new Lease()
    lease.granted(lease.ask(1000), 60_000)
    lease.granted(lease.ask(2000), 5000)
    expect(lease.until).toBe(7000)
  })

  test('is asked for when due, again soon when nobody answers, and at once after a connect', () => {
    const lease = new Lease()
    expect(lease.due(600_000)).toBe(-Infinity)
    const nonce = lease.ask(1000)
    expect(lease.due(600_000)).toBe(6000)
    lease.granted(nonce, 3_600_000)
    expect(lease.due(600_000)).toBe(601_000)
    lease.askSoon()
    expect(lease.due(600_000)).toBe(-Infinity)
  })

  test('whatever order answers come in, it never lasts longer than one of them allows', () => {
    const answers = array(record({ at: integer({ min: 0, max: 1000 }), length: integer({ min: 1, max: 1000 }) }), {
      minLength: 1,
      maxLength: 10,
    })
    const never = property(answers, array(integer({ min: 0, max: 9 }), { maxLength: 30 }), (asked, order) => {
      const lease = new Lease()
      let boot = 0
      const nonces = asked.map(({ at, length }) => {
        boot += at
        return { nonce: lease.ask(boot), until: boot + length, length }
      })
      const ends = new Set<number>()
      for (const index of order) {
        const answer = nonces[index % nonces.length]
        if (answer && lease.granted(answer.nonce, answer.length)) ends.add(answer.until)
      }
      return lease.until === null ? ends.size === 0 : ends.has(lease.until)
    })
    expect(() => assert(never)).not.toThrow()
  })
})

test('a jump of the clock is found at the next look, once; slewing is none', () => {
  const time = { boot: 0, monotonic: 0, wall: 0 }
  const look = jumpWatch({ boot: () => time.boot, monotonic: () => time.monotonic, wall: () => time.wall })
  const pass = (boot: number, monotonic: number, wall: number): number => {
    time.boot += boot
    time.monotonic += monotonic
    time.wall += wall
    return look()
  }
  expect(pass(1000, 1000, 1000)).toBe(0)
  expect(pass(1010, 1000, 1900)).toBe(0)
  // the event loop was blocked: all clocks went on
  expect(pass(9000, 9000, 9000)).toBe(0)
  expect(pass(61_000, 1000, 61_000)).toBe(60_000)
  expect(pass(1000, 1000, 1000)).toBe(0)
  expect(pass(1000, 1000, 4000)).toBe(3000)
  // set back: no time went by unseen
  expect(pass(1000, 1000, -50_000)).toBe(0)
})
