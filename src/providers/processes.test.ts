import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { fromStat, identityOf, isAlive, kill, parseIdentity } from './processes.ts'

test('a name with spaces and brackets does not shift the fields', () => {
  const rest = 'S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 99'
  expect(fromStat(7, `7 (a ) R (b) ${rest}`)?.started).toMatch(/:4242$/)
})

test('what is left of a process that ended is nobody', () => {
  expect(fromStat(7, `7 (gone) Z 1 ${'0 '.repeat(30)}`)).toBeNull()
  expect(fromStat(7, 'not a stat line')).toBeNull()
})

test('a pid that came back to somebody else is not the same process, and is not killed', () => {
  const self = identityOf(process.pid)
  expect(self).not.toBeNull()
  const another = { pid: process.pid, started: `${self?.started}0` }
  expect(isAlive(self)).toBe(true)
  expect(isAlive(another)).toBe(false)
  kill(another)
  expect(isAlive(self)).toBe(true)
})

test('a process that is killed is not alive', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' })
  const identity = identityOf(child.pid as number)
  expect(isAlive(identity)).toBe(true)
  if (identity !== null) kill(identity)
  await once(child, 'exit')
  expect(isAlive(identity)).toBe(false)
})

test('what was written down wrongly is nobody', () => {
  for (const value of [null, 1, 'x', {}, { pid: '1', started: 'x' }, { pid: 1 }])
    expect(parseIdentity(value)).toBeNull()
  expect(parseIdentity({ pid: 1, started: 'x', more: 1 })).toEqual({ pid: 1, started: 'x' })
  expect(identityOf(-1)).toBeNull()
  expect(identityOf(1.5)).toBeNull()
})
