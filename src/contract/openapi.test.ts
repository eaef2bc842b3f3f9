import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { openapiDocument } from './openapi.ts'
import { paths } from './paths.ts'

interface Operation {
  readonly operationId: string
  readonly security: readonly Readonly<Record<string, unknown>>[]
  readonly responses: Readonly<Record<string, { readonly description: string }>>
}
const document = openapiDocument(manifest.version)
const byPath = document['paths'] as Record<string, Record<string, Operation>>
const operations = Object.values(byPath).flatMap((ways) => Object.values(ways))

test('the saved description is current; if not: node scripts/openapi.ts', () => {
  const saved = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as unknown
  expect(saved).toEqual(JSON.parse(JSON.stringify(document)))
})

test('every address of the table is in it', () => {
  const described = new Set(Object.keys(byPath).map((path) => path.replace(/\{(\w+)\}/g, ':$1')))
  expect(new Set(Object.values(paths).map(({ path }) => path))).toEqual(described)
})

test('every reference leads somewhere, and every component is referred to', () => {
  const text = JSON.stringify(document)
  const referred = new Set([...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name))
  const defined = Object.keys((document['components'] as { schemas: object }).schemas)
  expect([...referred].sort()).toEqual(defined.sort())
  expect(text).not.toContain('$defs')
})

test('only health and this description are open to anyone', () => {
  const open = operations.filter(({ security }) => security.length === 0).map(({ operationId }) => operationId)
  expect(open.sort()).toEqual(['health', 'openapi'])
})

test('what asks for a token says what comes without one', () => {
  for (const { security, responses } of operations.filter(({ security }) => security.length > 0))
    expect([security.length, responses['401']?.description]).toEqual([1, '`unauthorized`'])
})
