import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { jobIdOf, Logs, tokenOf } from './logs.ts'

let folder: string
let logs: Logs
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portal-logs-'))
  logs = new Logs(folder)
})
afterEach(async () => {
  logs.close()
  await rm(folder, { recursive: true, force: true })
})

const bytes = (text: string) => Buffer.from(text)
const all = (attempt = 'j1.1') => Buffer.from(logs.read(attempt, 0, 1_000_000)).toString()

test('an attempt’s id is its job’s and its token, also where a job’s id has a dot', () => {
  expect([jobIdOf('j1.12'), tokenOf('j1.12')]).toEqual(['j1', 12])
  expect([jobIdOf('a.b.3'), tokenOf('a.b.3')]).toEqual(['a.b', 3])
})

describe('J-FILE-3 a log, shipped by offset', () => {
  test('grows, and is acknowledged as far as it is held', () => {
    expect(logs.append('j1.1', 0, bytes('one '))).toBe(4)
    expect(logs.append('j1.1', 4, bytes('two'))).toBe(7)
    expect(all()).toBe('one two')
  })

  test.each([
    ['a repeat is nothing', 0, 'one ', 8, 'one two '],
    ['a repeat of a part is nothing', 2, 'e t', 8, 'one two '],
    ['a piece that overlaps brings what is new', 4, 'two three', 13, 'one two three'],
    ['a gap is answered with what is there, and nothing is kept', 9, 'four', 8, 'one two '],
    ['nothing adds nothing', 8, '', 8, 'one two '],
  ])('%s', (_, offset, text, upTo, expected) => {
    logs.append('j1.1', 0, bytes('one two '))
    expect(logs.append('j1.1', offset, bytes(text))).toBe(upTo)
    expect(all()).toBe(expected)
  })

  test('what is held already is not written over by other bytes', () => {
    logs.append('j1.1', 0, bytes('true'))
    logs.append('j1.1', 0, bytes('lies and more'))
    expect(all()).toBe('true and more')
  })

  test('however a log is cut up, repeated and reordered, it comes out whole once every piece has come often enough', () => {
    const text = Array.from({ length: 300 }, (_, n) => String.fromCharCode(97 + (n % 26))).join('')
    const pieces = fc.array(fc.tuple(fc.nat(299), fc.integer({ min: 0, max: 120 })), { maxLength: 40 })
    let attempt = 0
    fc.assert(
      fc.property(pieces, (sent) => {
        const id = `j2.${++attempt}`
        for (const [offset, length] of sent) {
          const upTo = logs.append(id, offset, bytes(text.slice(offset, offset + length)))
          expect(upTo).toBe(logs.size(id))
          expect(all(id)).toBe(text.slice(0, upTo))
        }
        while (logs.size(id) < 300) logs.append(id, logs.size(id), bytes(text.slice(logs.size(id), logs.size(id) + 77)))
        expect(all(id)).toBe(text)
        logs.release(id)
      }),
    )
  })

  test('J-SAFE-2 behind its limit nothing is kept, and nothing has to be sent again', () => {
    logs.append('j1.1', 0, bytes('before|after'))
    logs.cut('j1.1', 6)
    expect(all()).toBe('before')
    expect(logs.append('j1.1', 6, bytes('|after the move'))).toBe(21)
    expect(all()).toBe('before')
  })

  test('J-SAFE-2 what is missing up to the limit still comes, and no byte more', () => {
    logs.append('j1.1', 0, bytes('bef'))
    logs.cut('j1.1', 6)
    expect(logs.append('j1.1', 3, bytes('ore|after'))).toBe(12)
    expect(all()).toBe('before')
    expect(logs.append('j1.1', 50, bytes('later'))).toBe(55)
    expect(all()).toBe('before')
  })

  test('is read in pieces, and is empty behind its end', () => {
    logs.append('j1.1', 0, bytes('0123456789'))
    expect(Buffer.from(logs.read('j1.1', 8, 100)).toString()).toBe('89')
    expect(Buffer.from(logs.read('j1.1', 3, 2)).toString()).toBe('34')
    expect(logs.read('j1.1', 10, 5)).toHaveLength(0)
    expect(logs.read('j1.1', 99, 5)).toHaveLength(0)
  })

  test('is the same after a restart, and after its file was closed', () => {
    logs.append('j1.1', 0, bytes('kept'))
    logs.release('j1.1')
    expect(all()).toBe('kept')
    logs.close()
    logs = new Logs(folder)
    expect(logs.size('j1.1')).toBe(4)
    expect(logs.append('j1.1', 4, bytes(' on'))).toBe(7)
    expect(all()).toBe('kept on')
  })

  test('each attempt has its own, in files that nobody else may read', async () => {
    logs.append('j1.1', 0, bytes('first'))
    logs.append('j1.2', 0, bytes('second'))
    expect([all('j1.1'), all('j1.2')]).toEqual(['first', 'second'])
    const place = join(folder, 'j1', 'log')
    expect((await readdir(place)).sort()).toEqual(['1', '2'])
    expect((await stat(join(place, '1'))).mode & 0o777).toBe(0o600)
    expect((await stat(place)).mode & 0o777).toBe(0o700)
  })

  test('whoever follows a job is told when it grew, and not when it did not', async () => {
    logs.append('j1.1', 0, bytes('x'))
    const grew: string[] = []
    const over = new AbortController()
    const follow = async (job: string) => {
      await logs.grown(job, over.signal)
      grew.push(over.signal.aborted ? `${job} over` : job)
    }
    const followers = [follow('j1'), follow('j2')]
    logs.append('j1.1', 0, bytes('x'))
    await new Promise((go) => setImmediate(go))
    expect(grew).toEqual([])
    logs.append('j1.2', 0, bytes('y'))
    await new Promise((go) => setImmediate(go))
    expect(grew).toEqual(['j1'])
    over.abort()
    await Promise.all(followers)
    expect(grew).toEqual(['j1', 'j2 over'])
  })
})
