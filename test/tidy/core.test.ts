import { expect, test } from 'vitest'
import { codeOf, importsOf, linesWith, productSources, type SourceFile } from './files.ts'

/** The core decides and does nothing else. Each ban says what to use instead. */
const bans: readonly { readonly pattern: RegExp; readonly instead: string }[] = [
  {
    pattern: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\b|\bTemporal\.Now\b/,
    instead: 'take `now: Instant` as an argument',
  },
  { pattern: /\bnew Date\(/, instead: 'an Instant is a number of ms; calendars live at the edges' },
  { pattern: /\bMath\.random\b|\bcrypto\b/, instead: 'take what was drawn as an argument' },
  {
    pattern: /\b(setTimeout|setInterval|setImmediate|queueMicrotask)\b/,
    instead: 'say when to look again (`lookAgainAt`, `wait`); the loop waits',
  },
  { pattern: /\b(fetch|WebSocket|EventSource)\b/, instead: 'put the fact into the snapshot; ports fetch it' },
  { pattern: /\bprocess\b|\bglobalThis\b/, instead: 'take it as an argument' },
  { pattern: /\bconsole\b/, instead: 'give a verdict with its reason; whoever asked tells it' },
  {
    pattern: /\bawait\b|\basync\b|\bPromise\b/,
    instead: 'decide at once from the snapshot; what takes time belongs to a port',
  },
]

const core = productSources.filter(({ path }) => path.startsWith('src/core/'))
const found = (file: SourceFile): readonly string[] =>
  bans.flatMap(({ pattern, instead }) =>
    linesWith({ path: file.path, text: codeOf(file.text) }, (line) => pattern.test(line)).map(
      (line) => `${line}: ${instead}`,
    ),
  )

test('J-LOOP-4 the core has no clock, no randomness, no timer and no I/O', () => {
  expect(core.length).toBeGreaterThan(0)
  expect(core.flatMap(found)).toEqual([])
})

test('the core imports nothing but itself', () => {
  const outside = core.flatMap((file) =>
    importsOf(file)
      .filter(({ path }) => path === null || !path.startsWith('src/core/'))
      .map(({ from }) => `${file.path} imports ${from}: the core has no dependencies`),
  )
  expect(outside).toEqual([])
})

test('the bans are seen in code, and not in sentences', () => {
  const lines = ['const a = Date.now()', 'setTimeout(f, 1)', 'x = Math.random()', "await fetch('x')", 'process.env.X']
  for (const text of lines) expect([text, found({ path: 'a.ts', text }).length > 0]).toEqual([text, true])
  const words = ['// Date.now() is banned', "const said = 'the process was killed'", '/** setTimeout\n process */']
  for (const text of words) expect(found({ path: 'a.ts', text })).toEqual([])
})
