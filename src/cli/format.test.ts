import { expect, test } from 'vitest'
import { ago, clip, clock, coarse, count, duration, money, plain, shellWords, size } from './format.ts'

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1023, '1 KiB'],
  [1536, '1.5 KiB'],
  [12 * 1024 ** 2, '12 MiB'],
  [123_456_789, '118 MiB'],
  [1.25 * 1024 ** 3, '1.25 GiB'],
  [-5, '0 B'],
])('%d bytes are %s', (bytes, text) => expect(size(bytes)).toBe(text))

test.each([
  [0.4, '0 ms'],
  [40, '40 ms'],
  [1234, '1.2 s'],
  [59_400, '59 s'],
  [65_000, '1 min 05 s'],
  [3_600_000, '1 h'],
  [7_800_000, '2 h 10 min'],
  [273_600_000, '3 d 04 h'],
])('%d ms are %s', (ms, text) => expect(duration(ms)).toBe(text))

test('an instant is told from now, in one unit', () => {
  expect(ago(1000, 1500)).toBe('now')
  expect(ago(0, 40_000)).toBe('40 s ago')
  expect(ago(180_000, 0)).toBe('in 3 min')
  expect(coarse(200 * 3_600_000)).toBe('8 d')
  expect(ago(0, 59_900)).toBe('59 s ago')
})

test('what is to come is told in the nearest unit: three days do not become two a moment later', () => {
  expect(ago(3 * 86_400_000 - 400, 0)).toBe('in 3 d')
  expect(ago(59_900, 0)).toBe('in 1 min')
  expect(ago(3_599_000, 0)).toBe('in 1 h')
  expect(ago(9_800, 0)).toBe('in 10 s')
})

test('a clock shows the day only where it is not today', () => {
  const noon = new Date(2026, 11, 1, 12, 5, 9).getTime()
  expect(clock(noon, noon)).toBe('12:05:09')
  expect(clock(noon, noon + 86_400_000)).toBe('2026-12-01 12:05:09')
})

test.each([
  ['0', '0 USD'],
  ['0.00', '0 USD'],
  ['12.50', '12.50 USD'],
  ['0.5', '0.50 USD'],
  ['0.003100', '0.0031 USD'],
  ['0.00312345', '0.0032 USD'],
  ['0.000050', '<0.0001 USD'],
  ['-1.25', '-1.25 USD'],
])('%s is shown as %s', (amount, text) => expect(money({ amount, currency: 'USD' })).toBe(text))

test('text from elsewhere cannot steer the terminal', () => {
  expect(plain('a\u001b[31mred\u0007')).toBe('a\\x1b[31mred\\x07')
  expect(plain('two\nlines\tand \u202eback')).toBe('two\\nlines\\tand \\u202eback')
  expect(plain('größer 日本 ✓')).toBe('größer 日本 ✓')
})

test('a command is shown as it would be typed', () => {
  expect(shellWords(['python3', 'train.py', '--lr=0.1'])).toBe('python3 train.py --lr=0.1')
  expect(shellWords(['sh', '-c', "echo 'a b'"])).toBe(`sh -c 'echo '\\''a b'\\'''`)
  expect(shellWords([''])).toBe("''")
})

test('small words', () => {
  expect(count(1, 'job')).toBe('1 job')
  expect(count(3, 'job')).toBe('3 jobs')
  expect(clip('abcdef', 4)).toBe('abc…')
})
