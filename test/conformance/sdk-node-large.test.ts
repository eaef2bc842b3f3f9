import { expect, test } from 'vitest'
import { Side } from '../../sdk/node/graph/testing.ts'

interface Link {
  n: number
  next: Link | null
}
const chain = (length: number): Link => {
  let first: Link = { n: length, next: null }
  for (let n = length - 1; n > 0; n--) first = { n, next: first }
  return first
}
const links = (first: Link | null): Link[] => {
  const all = []
  for (let at = first; at !== null; at = at.next) all.push(at)
  return all
}

test('K-STRICT-5 a list nested 100,000 deep is carried, also turned round, into the script’s own objects', () => {
  const source = new Side<{ list: Link | null }>({ list: chain(100_000) })
  let turned: Link | null = null
  for (let at = source.state.list; at !== null;) {
    const next: Link | null = at.next
    at.next = turned
    turned = at
    at = next
  }
  source.state.list = turned
  const saved = source.carried()
  expect(saved.graph.length).toBeLessThan(100_000 * 40)

  const target = new Side<{ list: Link | null }>({ list: chain(100_000) })
  const own = links(target.state.list)
  expect(target.restore(saved)).toEqual([])
  const restored = links(target.state.list)
  expect(restored).toHaveLength(100_000)
  expect(restored.every((link, at) => link === own[99_999 - at])).toBe(true)
  expect(target.carried().digest).toBe(saved.digest)
})

test('the script’s own members of large sets and maps are found without searching each time', () => {
  const build = () => ({
    set: new Set(Array.from({ length: 30_000 }, (_, n) => ({ n }))),
    map: new Map(Array.from({ length: 30_000 }, (_, n) => [{ key: n }, { n }])),
  })
  const source = new Side(build())
  const saved = source.carried()
  const target = new Side(build())
  const [member] = target.state.set
  const [[key, value] = []] = target.state.map
  // searched one after the other this would take minutes
  expect(target.restore(saved)).toEqual([])
  expect([...target.state.set][0]).toBe(member)
  expect([...target.state.map][0]).toEqual([key, value])
  expect([...target.state.map.keys()][0]).toBe(key)
})
