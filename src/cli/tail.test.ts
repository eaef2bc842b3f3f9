import { expect, test } from 'vitest'
import { lastLines, Tail } from './tail.ts'

const last = (text: string, lines: number) => lastLines(Buffer.from(text), lines).toString()

test('the last lines, whether or not the last one has ended', () => {
  expect(last('1\n2\n3\n', 2)).toBe('2\n3\n')
  expect(last('1\n2\n3', 2)).toBe('2\n3')
  expect(last('1\n2\n', 5)).toBe('1\n2\n')
  expect(last('\n\n\n', 1)).toBe('\n')
  expect(last('1\n2\n', 0)).toBe('')
  expect(last('', 3)).toBe('')
})

test('pieces that cut lines apart give the same, and without a limit all is passed on at once', async () => {
  const got: string[] = []
  const tail = new Tail(2, async (piece) => void got.push(piece.toString()))
  for (const piece of ['1\n2', '2\n', '3', '3\n']) await tail.add(Buffer.from(piece))
  expect(got).toEqual([])
  await tail.flush()
  expect(got.join('')).toBe('22\n33\n')
  const all = new Tail(null, async (piece) => void got.push(piece.toString()))
  await all.add(Buffer.from('x'))
  expect(got.at(-1)).toBe('x')
})

test('a log larger than what is kept costs no more than that', async () => {
  let size = 0
  const tail = new Tail(1_000_000, async (piece) => void (size += piece.length))
  const piece = Buffer.alloc(1024 * 1024, 'a\n')
  for (let i = 0; i < 40; i++) await tail.add(piece)
  await tail.flush()
  expect(size).toBeLessThanOrEqual(16 * 1024 * 1024)
})
