import { expect, test } from 'vitest'
import { importsOf, productSources, sources, type SourceFile } from './files.ts'

/** Which rooms a room may import, and how. What is not named here is not allowed. */
const arrows: Record<string, Readonly<Record<string, 'all' | 'types'>>> = {
  core: {},
  contract: { core: 'types' },
  store: { core: 'all' },
  providers: { core: 'all' },
  checkpoints: { core: 'all' },
  cluster: { core: 'all' },
  agent: { core: 'all', contract: 'all', checkpoints: 'all' },
  control: { core: 'all', contract: 'all', store: 'all', providers: 'all', checkpoints: 'all', cluster: 'all' },
  simulate: {
    core: 'all',
    contract: 'all',
    store: 'all',
    providers: 'all',
    checkpoints: 'all',
    cluster: 'all',
    control: 'all',
  },
  cli: { contract: 'all' },
}
/** Commands that start another part by its main, when they are reached and not before. */
const starters = /^src\/cli\/commands\/(serve|simulate|doctor)\b/
const started = /^src\/(control|simulate)\/main\.ts$/

const roomOf = (path: string): string => /^src\/([^/]+)\//.exec(path)?.[1] ?? ''

function crossings(file: SourceFile): readonly string[] {
  const room = roomOf(file.path)
  return importsOf(file).flatMap(({ from, path, typesOnly, lazy }) => {
    if (path === null) return []
    const other = roomOf(path)
    if (other === room) return []
    if (lazy && starters.test(file.path) && started.test(path)) return []
    const allowed = arrows[room]?.[other]
    if (allowed === 'all' || (allowed === 'types' && typesOnly)) return []
    const how = allowed === 'types' ? 'types alone (import type)' : 'nothing'
    return [`${file.path} imports ${from}: ${room} takes ${how} from ${other || 'outside src'}`]
  })
}

test('every room stands in the list of arrows', () => {
  expect([...new Set(productSources.map(({ path }) => roomOf(path)))].filter((room) => !(room in arrows))).toEqual([])
})

test('rooms import only what the arrows allow', () => {
  expect(productSources.flatMap(crossings)).toEqual([])
})

test('relative imports end in .ts (or .json), so that Node runs them as they are', () => {
  const bad = sources.flatMap((file) =>
    importsOf(file)
      .filter(({ path, from }) => path !== null && !/\.(ts|json|js)$/.test(from))
      .map(({ from }) => `${file.path} imports ${from}: write the ending`),
  )
  expect(bad).toEqual([])
})

test('the arrows are seen: a crossing, a value where only types may come, a lazy start', () => {
  const file = (path: string, text: string): SourceFile => ({ path, text })
  expect(crossings(file('src/store/x.ts', "import { a } from '../control/a.ts'"))).toHaveLength(1)
  expect(crossings(file('src/core/x.ts', "import type { A } from '../store/port.ts'"))).toHaveLength(1)
  expect(crossings(file('src/contract/x.ts', "import { a } from '../core/a.ts'"))).toHaveLength(1)
  expect(crossings(file('src/contract/x.ts', "import {\n  type A,\n  type B,\n} from '../core/a.ts'"))).toEqual([])
  expect(crossings(file('src/contract/x.ts', "export type { A } from '../core/a.ts'"))).toEqual([])
  expect(crossings(file('src/cli/commands/serve.ts', "await import('../../control/main.ts')"))).toEqual([])
  expect(crossings(file('src/cli/commands/ps.ts', "await import('../../control/main.ts')"))).toHaveLength(1)
})
