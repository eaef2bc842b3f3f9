import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import { carriedKinds, Classy, classes, refusedKinds } from './corpus.ts'
import { Side, type Carried } from './testing.ts'

const deep = (value: unknown): unknown => {
  let at = value
  for (let level = 0; level < 1_000; level++) at = level % 2 === 0 ? [at] : { in: at }
  return at
}
const deepBack = (value: unknown): unknown => {
  let at = value
  for (let level = 999; level >= 0; level--) at = level % 2 === 0 ? (at as unknown[])[0] : (at as { in: unknown }).in
  return at
}
/** Where a value can stand: put it there, find it again, and how a path says so. */
const places: readonly {
  readonly name: string
  readonly put: (value: unknown) => unknown
  readonly get: (holder: never) => unknown
  readonly path: RegExp
}[] = [
  { name: 'at the top', put: (value) => value, get: (holder: unknown) => holder, path: /^state\.value/ },
  {
    name: 'in objects and arrays',
    put: (value) => ({ list: [1, { here: value }] }),
    get: (holder: { list: [number, { here: unknown }] }) => holder.list[1].here,
    path: /^state\.value\.list\[1\]\.here/,
  },
  {
    name: 'in a map',
    put: (value) => new Map([['key', value]]),
    get: (holder: Map<string, unknown>) => holder.get('key'),
    path: /^state\.value\.get\("key"\)/,
  },
  {
    name: 'in a set',
    put: (value) => new Set([0, value]),
    get: (holder: Set<unknown>) => [...holder][1],
    path: /^state\.value\.values\(\)\[1\]/,
  },
  {
    name: 'in an object of a class',
    put: (value) => Object.assign(new Classy(1), { held: value }),
    get: (holder: Classy & { held: unknown }) => holder.held,
    path: /^state\.value\.held/,
  },
  { name: 'a thousand levels deep', put: deep, get: deepBack, path: /^state\.value\.in\[0\].*more.*\[0\]/ },
]

describe('K-STRICT-5 the corpus', () => {
  test('has at least 60 kinds', () => {
    expect(carriedKinds.length + refusedKinds.length).toBeGreaterThanOrEqual(60)
  })

  for (const kind of carriedKinds)
    test(`carries ${kind.name}, equal, wherever it stands`, () => {
      for (const place of places) {
        const value = kind.make()
        const source = new Side<{ value?: unknown }>({}, classes)
        source.state.value = place.put(value)
        const target = new Side<{ value?: unknown }>({}, classes)
        const saved: Carried = source.carried()
        expect(target.restore(saved)).toEqual([])
        const copy = place.get(target.state.value as never)
        expect(isDeepStrictEqual(copy, value), `${kind.name} ${place.name}`).toBe(true)
        expect(target.carried().digest).toBe(saved.digest)
        kind.check?.(copy as never, value as never)
      }
    })

  for (const kind of refusedKinds)
    test(`names ${kind.name} by its path, wherever it stands`, () => {
      for (const place of places) {
        const value = kind.make()
        const source = new Side<{ value?: unknown }>({}, classes)
        source.state.value = place.put(value)
        const refused = source.refused()
        expect(refused.length, `${kind.name} ${place.name}`).toBeGreaterThan(0)
        for (const each of refused) {
          expect(each.path).toMatch(place.path)
          expect(each.reason).not.toBe('')
          expect(each.advice).not.toBe('')
        }
        expect(refused.map((each) => `${each.path} ${each.type}`).join('\n')).toMatch(kind.named)
        kind.unharmed?.(value as never)
      }
    })
})
