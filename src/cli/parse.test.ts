import { expect, test } from 'vitest'
import { bytes, cpus, gpus, jobAndPath, milliseconds, pairs, whole } from './parse.ts'

test.each([
  ['64MiB', 64 * 1024 ** 2],
  ['32GB', 32e9],
  ['1.5 GiB', 1.5 * 1024 ** 3],
  ['7B', 7],
])('%s is a size', (text, size) => expect(bytes(text)).toBe(size))

test.each([
  ['5Gib', 'did you mean GiB'],
  ['5', 'is not a size'],
  ['-5GiB', 'is not a size'],
  ['0GiB', 'that can be had'],
  ['999999999TiB', 'that can be had'],
  ['5toString', 'no unit that is known'],
])('%s is no size, and why', (text, why) => expect(() => bytes(text)).toThrow(why))

test('cores, GPUs, counts and lengths of time are checked', () => {
  expect(cpus('0.5')).toBe(0.5)
  for (const bad of ['0', '-1', '1e3', '5000', 'two']) expect(() => cpus(bad)).toThrow('CPU cores')
  expect(gpus('A100')).toEqual({ model: 'A100', count: 1 })
  expect(gpus('A100:2')).toEqual({ model: 'A100', count: 2 })
  for (const bad of ['', ':2', 'A100:0', 'A100:65', 'A100:x', 'A 100']) expect(() => gpus(bad)).toThrow('A100:2')
  expect(whole(1, 9)('9')).toBe(9)
  for (const bad of ['0', '10', '1.5', '', '0x1']) expect(() => whole(1, 9)(bad)).toThrow('from 1 to 9')
  expect(milliseconds('1.5h')).toBe(5_400_000)
  for (const bad of ['5', 'h', '5 weeks', '-1s']) expect(() => milliseconds(bad)).toThrow('72h')
})

test('pairs keep what is behind the first =, the last of a key counts, a key alone is inherited', () => {
  expect(pairs(['A=1', 'B=x=y', 'A=2', 'C='], 'KEY=VALUE')).toEqual({ A: '2', B: 'x=y', C: '' })
  expect(pairs(['HOME'], 'KEY=VALUE', { HOME: '/h' })).toEqual({ HOME: '/h' })
  expect(() => pairs(['NONE'], 'KEY=VALUE', {})).toThrow('NONE is not set here')
  expect(() => pairs(['=x'], 'KEY=VALUE')).toThrow('is not KEY=VALUE')
  expect(Object.getPrototypeOf(pairs(['__proto__=x'], 'KEY=VALUE'))).toBe(Object.prototype)
})

test('a job and a path are told apart at the first colon', () => {
  expect(jobAndPath('nightly:out/a:b')).toEqual({ job: 'nightly', path: 'out/a:b' })
  expect(jobAndPath('nightly:./out/')).toEqual({ job: 'nightly', path: 'out' })
  expect(jobAndPath('nightly:')).toEqual({ job: 'nightly', path: '' })
  for (const bad of ['nightly', ':out']) expect(() => jobAndPath(bad)).toThrow('JOB:PATH')
})
