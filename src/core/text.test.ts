import fc from 'fast-check'
import { expect, test } from 'vitest'
import { didYouMean, nearest } from './text.ts'

const known = ['ttl', 'ttl.keep', 'lease.length', 'lease.renew', 'lease.margin', 'checkin', 'spot']

test.each([
  ['a letter too few', 'chekin', 'checkin'],
  ['a letter too many', 'checkinn', 'checkin'],
  ['another letter', 'sp0t', 'spot'],
  ['two letters swapped', 'ttl.kepe', 'ttl.keep'],
  ['the beginning of one', 'lease.ren', 'lease.renew'],
  ['the beginning of several: the first of them', 'lease.', 'lease.length'],
  ['exactly one of them, though others begin with it', 'ttl', 'ttl'],
  ['nothing like it', 'gpu', null],
  ['nothing at all', '', null],
] as const)('the nearest known to what was typed: %s', (_, typed, expected) => {
  expect(nearest(typed, known)).toBe(expected)
})

test('a hint is a clause that can follow any sentence, or nothing', () => {
  expect(didYouMean('chekin', known)).toBe('; did you mean checkin?')
  expect(didYouMean('gpu', known)).toBe('')
  expect(didYouMean('x', [])).toBe('')
})

test('whatever is known is the nearest to itself', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 8 }), (words) => {
      for (const word of words) expect(nearest(word, words)).toBe(word)
    }),
  )
})
