import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Side } from './testing.ts'

test('K-NODE-1 what the script holds is filled in place: keys in the saved order, what is no more is taken away', () => {
  const build = () => ({
    box: { a: 1, gone: 2, b: { deep: [1, 2, 3] } } as Record<string, unknown>,
    list: [1, 2, 3, { four: 4 }] as unknown[],
    map: new Map<string, unknown>([['x', 1]]),
    date: new Date(0),
    bytes: new Uint8Array(8),
    url: new URL('http://one/'),
    pattern: /a/g,
    error: new Error('before'),
  })
  const source = new Side(build())
  const { state } = source
  delete state.box.gone
  delete state.box.a
  state.box.a = 'again, now last'
  Object.defineProperty(state.box, 'hidden', { value: 1, enumerable: false, configurable: true, writable: true })
  state.list.length = 1
  state.list[3] = 'after a hole'
  state.map.clear()
  state.map.set('y', state.map)
  state.date.setTime(5)
  state.bytes[3] = 7
  state.url.pathname = '/two'
  state.pattern.lastIndex = 3
  state.error.message = 'after'

  const target = new Side(build())
  const held = { ...target.state }
  expect(target.restore(source.carried())).toEqual([])
  for (const key of Object.keys(held) as (keyof typeof held)[]) expect(target.state[key]).toBe(held[key])
  expect(Reflect.ownKeys(held.box)).toEqual(['b', 'a', 'hidden'])
  expect([1 in held.list, held.list.length, held.list[3]]).toEqual([false, 4, 'after a hole'])
  expect(held.map.get('y')).toBe(held.map)
  expect([held.date.getTime(), held.bytes[3], held.url.href, held.pattern.lastIndex, held.error.message]).toEqual([
    5,
    7,
    'http://one/two',
    3,
    'after',
  ])
  expect(target.carried().digest).toBe(source.carried().digest)
})

test('an object that the script has no more is made anew; one of another kind in its place is refused by path', () => {
  const source = new Side<{ box: { inner: unknown } }>({ box: { inner: { n: 1 } } })
  const saved = source.carried()
  const without = new Side<{ box: { inner: unknown } }>({ box: { inner: null } })
  expect(without.restore(saved)).toEqual([])
  expect(without.state.box.inner).toEqual({ n: 1 })
  expect(without.carried().digest).toBe(saved.digest)
  const other = new Side<{ box: { inner: unknown } }>({ box: { inner: new Map() } })
  expect(other.restore(saved)).toMatchObject([{ path: 'state.box.inner', reason: 'the script has a Map there' }])
  expect(other.state.box.inner).toEqual(new Map())
})

test('bytes that someone changed are an error or a refusal, never a hang or a crash', () => {
  const source = new Side({
    list: [1, 'two', { three: [3n] }],
    map: new Map([['k', new Date(1)]]),
    bytes: new Uint8Array(100),
    sparse: Object.assign([], { 50: 1 }),
  })
  const saved = source.carried()
  for (let at = 0; at < saved.graph.length; at++)
    for (const bit of [1, 16, 128]) {
      const graph = Buffer.from(saved.graph)
      graph[at] = (graph[at] ?? 0) ^ bit
      const target = new Side({})
      let outcome: unknown
      try {
        outcome = target.restore({ ...saved, graph })
      } catch (error) {
        outcome = error
      }
      expect(Array.isArray(outcome) || outcome instanceof Error).toBe(true)
    }
})

test('more buffers than the layout can name are received as one and come apart again', () => {
  const build = () => ({ a: new Uint8Array(5_000), b: null as unknown })
  const source = new Side(build())
  source.state.a.fill(7)
  source.state.b = new Float64Array(1_000).fill(0.5)
  const saved = { ...source.carried(), layout: null }
  const target = new Side(build())
  const { a } = target.state
  expect(target.restore(saved)).toEqual([])
  expect(target.state.a).toBe(a)
  expect(target.state).toEqual(source.state)
  expect(target.carried().digest).toBe(saved.digest)
})

const anything = fc.anything({
  maxDepth: 4,
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
})

test('K-WHOLE-3 whatever is made of plain parts comes back equal with the same digest, anew and in place', () => {
  fc.assert(
    fc.property(anything, anything, (one, two) => {
      const source = new Side({ value: null as unknown })
      source.state.value = { one, two, again: one }
      const saved = source.carried()
      const anew = new Side({ value: null as unknown })
      expect(anew.restore(saved)).toEqual([])
      expect(isDeepStrictEqual(anew.state, source.state)).toBe(true)
      expect(anew.carried().digest).toBe(saved.digest)

      // the copy is what a script builds before job.state(); what is saved from there goes into another copy in place
      const script = new Side(anew.state)
      const later = script.carried()
      const held = script.state.value
      expect(script.restore(later)).toEqual([])
      expect(script.state.value).toBe(held)
      expect(isDeepStrictEqual(script.state, source.state)).toBe(true)
      expect(script.carried().digest).toBe(later.digest)
    }),
    { numRuns: 150 },
  )
})

test('another value, order, type or sharing has another digest', () => {
  const shared = {}
  const values: unknown[] = [
    0,
    -0,
    1,
    1n,
    '1',
    true,
    null,
    undefined,
    Number.NaN,
    [],
    {},
    [1, 2],
    [2, 1],
    { a: 1, b: 2 },
    { b: 2, a: 1 },
    new Set([1, 2]),
    new Set([2, 1]),
    new Map([[1, 2]]),
    new Uint8Array(8),
    new Int8Array(8),
    new Float64Array(1),
    [new Uint8Array(4), new Uint8Array(4)],
    [shared, shared],
    [{}, {}],
    Object.freeze({}),
    Object.create(null),
    new Date(0),
    new Date(1),
    /a/,
    /a/g,
    new Error('a'),
    'a'.repeat(70),
    Object('1'),
    [undefined],
    Array(1),
    new ArrayBuffer(8),
  ]
  const digests = values.map((value) => {
    const side = new Side({ value: null as unknown })
    side.state.value = value
    return side.carried().digest
  })
  expect(new Set(digests).size).toBe(values.length)
})
