import { expect, test } from 'vitest'
import { jobKey } from './key.ts'

const master = Buffer.alloc(32, 7)

test('a job has one key, another job another', () => {
  expect(jobKey(master, 'a')).toEqual(jobKey(master, 'a'))
  expect(jobKey(master, 'a')).not.toEqual(jobKey(master, 'b'))
  expect(jobKey(master, 'a')).toHaveLength(32)
})

test('a short master key is refused', () => {
  expect(() => jobKey(Buffer.alloc(31), 'a')).toThrow(RangeError)
})
