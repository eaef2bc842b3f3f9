import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bytesInWords, durationInWords, reasons, sentence, why, type ReasonCode } from './reasons.ts'
import { day, hour, minute, second } from './time/index.ts'

const codes = Object.keys(reasons) as ReasonCode[]
const holes = (code: ReasonCode): string[] =>
  [...reasons[code].matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string)

/** The sources that give reasons, as one text without the catalogue itself. */
const root = join(import.meta.dirname, '..')
const given = globSync('**/*.ts', { cwd: root, exclude: ['**/*.test.ts', '**/testing.ts', 'core/reasons.ts'] })
  .map((path) => readFileSync(join(root, path), 'utf8'))
  .join('\n')

describe('the catalogue of reasons', () => {
  test('each is given somewhere', () => {
    expect(
      codes.filter((code) => !given.includes(`'${code}'`) && !given.includes(`\`${code.split('.')[0]}.\${`)),
    ).toEqual([])
  })

  test('each is a clause: no capital, no full stop, its facts named as code names them', () => {
    for (const code of codes) {
      expect(reasons[code]).not.toMatch(/\.$|^\s|\s$|\{\}|\{[^a-z]/)
      expect(reasons[code]).toMatch(/^[a-z{]/)
    }
  })

  test('a sentence whose facts are all there has no hole, whatever they contain', () => {
    fc.assert(
      fc.property(fc.constantFrom(...codes), fc.oneof(fc.string(), fc.nat()), (code, fact) => {
        const facts = Object.fromEntries(holes(code).map((name) => [name, fact]))
        const told = sentence(why(code, facts))
        const left = holes(code).filter((name) => !String(fact).includes(`{${name}}`) && told.includes(`{${name}}`))
        expect(left).toEqual([])
      }),
    )
  })

  test('a fact that is missing shows its name: a gap is never hidden', () => {
    expect(sentence(why('ttl.within', { ran_ms: hour }))).toBe('ran 1 h of at most {ttl_ms}')
  })

  test('a fact that looks like a hole is not filled a second time', () => {
    expect(sentence(why('place.refused', { offer: '{error}', kind: 'capacity', error: 'full' }))).toBe(
      '{error} could not be had: capacity: full',
    )
  })
})

test.each([
  [0, '0 s'],
  [40, '0 s'],
  [1400, '1.4 s'],
  [9999, '10 s'],
  [30 * second, '30 s'],
  [minute, '1 min'],
  [hour - 1, '59 min 59 s'],
  [2 * hour + 5 * minute, '2 h 5 min'],
  [3 * day, '3 d'],
  [3 * day + minute, '3 d'],
  [-90 * second, '-1 min 30 s'],
  [Infinity, 'for ever'],
])('%d ms are %s in words', (ms, words) => {
  expect(durationInWords(ms)).toBe(words)
})

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1 kB'],
  [1234, '1.2 kB'],
  [999_950, '1 MB'],
  [120e6, '120 MB'],
  [4e15, '4000 TB'],
])('%d bytes are %s in words', (bytes, words) => {
  expect(bytesInWords(bytes)).toBe(words)
})
