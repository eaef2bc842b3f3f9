import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readEvents, type RawEvent } from './sse.ts'

/** What a file of this folder loads when it runs: imports of types are no imports. */
function loads(file: string, seen = new Set<string>()): Set<string> {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8')
  for (const [, clause, from] of text.matchAll(/^(?:import|export) ([^'"]*?)from '([^']+)'/gms)) {
    if (clause?.startsWith('type ') || from === undefined || seen.has(from)) continue
    seen.add(from)
    if (from.startsWith('./')) loads(from, seen)
  }
  return seen
}

test('the client loads no schema: every command would pay for it', () => {
  expect([...loads('./client.ts')].sort()).toEqual([
    './errors.ts',
    './paths.ts',
    './sse.ts',
    'node:http',
    'node:timers/promises',
  ])
  expect([...loads('./home.ts')].sort()).toEqual(['./errors.ts', 'node:fs', 'node:os', 'node:path'])
})

async function eventsOf(...pieces: string[]): Promise<(RawEvent | null)[]> {
  const events: (RawEvent | null)[] = []
  const source = (async function* () {
    yield* pieces
  })()
  for await (const event of readEvents(source)) events.push(event)
  return events
}

test('events are read however they are cut, with any line ends', async () => {
  const text =
    ': hello\n\nid: 1\nevent: log\ndata: {"a":\ndata: 1}\n\nid: 2\r\ndata:x\r\n\r\ndata\n\n:\nevent: left out\n\n'
  const whole = await eventsOf(text)
  expect(whole).toEqual([
    null,
    { id: '1', event: 'log', data: '{"a":\n1}' },
    { id: '2', event: 'message', data: 'x' },
    { id: '2', event: 'message', data: '' },
    null,
  ])
  for (let at = 1; at < text.length; at++) expect(await eventsOf(text.slice(0, at), text.slice(at))).toEqual(whole)
  expect(await eventsOf(...text)).toEqual(whole)
})

test('half an event at the end of a stream is none', async () => {
  expect(await eventsOf('id: 1\ndata: x\n')).toEqual([])
})

test('an event without end is not gathered without end', async () => {
  const piece = `data: ${'x'.repeat(1024 * 1024)}\n`
  await expect(eventsOf(piece, piece, piece, piece, piece)).rejects.toThrow(RangeError)
  await expect(eventsOf(...Array.from({ length: 5 }, () => 'x'.repeat(1024 * 1024)))).rejects.toThrow(RangeError)
})
