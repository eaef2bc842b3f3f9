import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Ledger } from './ledger.ts'
import { freshState, loadState } from './state.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portal-ledger-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('a change counts at once, and is on disk when its promise resolves, whatever else is being written', async () => {
  const ledger = new Ledger(folder, freshState(1))
  const writes = Array.from({ length: 50 }, async (_, n) => {
    const written = ledger.set({ clockAhead: n + 1 })
    expect(ledger.state.clockAhead).toBe(n + 1)
    await written
    expect((await loadState(folder))?.clockAhead).toBeGreaterThan(n)
  })
  await Promise.all(writes)
  expect(await loadState(folder)).toEqual(ledger.state)
})

test('a write that failed is told to who asked for it, and the next one carries its change', async () => {
  const ledger = new Ledger(join(folder, 'nowhere'), freshState(1))
  await expect(ledger.set({ clockAhead: 5 })).rejects.toThrow('ENOENT')
  await expect(ledger.set({ traceBegun: 7 })).rejects.toThrow('ENOENT')
  expect(ledger.state).toMatchObject({ clockAhead: 5, traceBegun: 7 })
})

test('names that every object has are no machines', () => {
  const ledger = new Ledger(folder, freshState(1))
  expect(ledger.machine('constructor')).toBeNull()
  expect(ledger.machine('__proto__')).toBeNull()
})

test('a state that is not there is none; one that is damaged is refused by its path', async () => {
  expect(await loadState(folder)).toBeNull()
  await new Ledger(folder, freshState(1)).written()
  const text = await readFile(join(folder, 'state.json'), 'utf8')
  expect(JSON.parse(text)).toMatchObject({ format: 1, traceBegun: 1 })
})
