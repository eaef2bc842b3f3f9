import { expect, test } from 'vitest'
import { calledElsewhere, didYouMean, distance, nearest } from './nearest.ts'

test('an edit is a letter put in, left out, changed, or swapped with its neighbour', () => {
  expect(distance('logs', 'logs')).toBe(0)
  expect(distance('logs', 'log')).toBe(1)
  expect(distance('logs', 'lobs')).toBe(1)
  expect(distance('logs', 'lgos')).toBe(1)
  expect(distance('', 'ps')).toBe(2)
})

test('the nearest known come first, and nothing far is proposed', () => {
  const known = ['run', 'resume', 'ps', 'show', 'suspend', 'stop']
  expect(nearest('resme', known)).toEqual(['resume'])
  expect(nearest('susp', known)[0]).toBe('suspend')
  expect(nearest('RNU', known)).toEqual(['run'])
  expect(nearest('xyzzy', known)).toEqual([])
  expect(nearest('q', known)).toEqual([])
})

test('a hostile word costs no time', () => {
  const started = performance.now()
  nearest('a'.repeat(1_000_000), ['run', 'b'.repeat(1_000_000)])
  expect(performance.now() - started).toBeLessThan(500)
})

test('the sentence names them', () => {
  expect(didYouMean([])).toBe('')
  expect(didYouMean(['run'])).toBe('; did you mean run?')
  expect(didYouMean(['a', 'b', 'c'])).toBe('; did you mean a, b or c?')
})

test('what other programs call a command leads to it', () => {
  expect(calledElsewhere('kill')).toBe('stop')
  expect(calledElsewhere('LIST')).toBe('ps')
  expect(calledElsewhere('constructor')).toBe(null)
  expect(calledElsewhere('stop')).toBe(null)
})
