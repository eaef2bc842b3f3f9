import { homedir } from 'node:os'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { codeOf, exists, files, linesWith, root, sources, tests } from './files.ts'

const longest = 450

test(`no file in src is longer than ${longest} lines: what no longer fits in the head is two rooms`, () => {
  const long = sources
    .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
    .filter(({ lines }) => lines > longest)
    .map(({ path, lines }) => `${path}: ${lines} lines`)
  expect(long).toEqual([])
})

test('no test stands alone, and none is left out without its reason', () => {
  const bad = tests.flatMap(({ path, text }) => {
    const code = codeOf(text).split('\n')
    const raw = text.split('\n')
    return code.flatMap((line, n) => {
      if (/\b(test|it|describe)\.only\b/.test(line)) return [`${path}:${n + 1}: .only leaves every other test out`]
      if (/\b(test|it|describe)\.(skip|todo|fails)\b(?!If)/.test(line) && !/\/\/ left out: \S/.test(raw[n - 1] ?? ''))
        return [`${path}:${n + 1}: write "// left out: WHY" above it, or take it away`]
      if (/\b(skipIf|runIf)\(/.test(line) && !/console\.(warn|log)|annotate\(/.test(text))
        return [`${path}:${n + 1}: print why the tests are left out, and how to get what is missing`]
      return []
    })
  })
  expect(bad).toEqual([])
})

test('every rule that a test names is a rule', () => {
  const rules = new Set(
    files
      .filter(({ path }) => path.startsWith('docs/rules/'))
      .flatMap(({ text }) => [...text.matchAll(/\*\*([JKC]-[A-Z]+-\d+)\*\*/g)].map((match) => match[1] as string)),
  )
  expect(rules.size).toBeGreaterThan(50)
  const titles = /\b(?:test|it|describe)(?:\.\w+(?:\([^)]*\))?)*\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g
  const unknown = tests.flatMap(({ path, text }) =>
    [...text.matchAll(titles)]
      .flatMap((match) => (match[2] as string).match(/\b[JKC]-[A-Z]+-\d+\b/g) ?? [])
      .filter((rule) => !rules.has(rule))
      .map((rule) => `${path}: there is no rule ${rule} in docs/rules`),
  )
  expect(unknown).toEqual([])
})

test('every decision is listed, under a number of its own', () => {
  const index = 'docs/decisions/README.md'
  const listed = files.find(({ path }) => path === index)?.text ?? ''
  const records = files.filter(({ path }) => path.startsWith('docs/decisions/') && path !== index)
  const bad = records.flatMap(({ path, text }) => {
    const [name = ''] = path.split('/').slice(-1)
    const number = Number(name.slice(0, 4))
    if (!text.startsWith(`# ${number}. `)) return [`${path}: begin it with "# ${number}. ", its own number`]
    if (!listed.includes(`| ${number} | [`) || !listed.includes(`(${name})`)) return [`${path}: list it in ${index}`]
    return records.filter((other) => other.path.includes(`/${name.slice(0, 5)}`)).length > 1
      ? [`${path}: its number is taken twice`]
      : []
  })
  expect(records.length).toBeGreaterThan(5)
  expect(bad).toEqual([])
})

test('no path of one machine and no package registry is committed', () => {
  // written in pieces, so that this file does not name them either
  const registries = ['registry npmjs', 'registry yarnpkg', 'pypi org', 'proxy golang'].map((host) =>
    host.replace(' ', '.'),
  )
  const places = [`/wo${'rk'}/`, root, `${homedir()}/`].filter((path) => path.length > 3)
  const named = files
    .filter(({ path }) => !path.startsWith('test/tidy/'))
    .flatMap((file) => linesWith(file, (line) => [...registries, ...places].some((word) => line.includes(word))))
  expect(named).toEqual([])
})

test('links in the documents lead somewhere', () => {
  const slug = (heading: string): string =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-')
  const anchors = (path: string): ReadonlySet<string> =>
    new Set(
      [...(files.find((file) => file.path === path)?.text ?? '').matchAll(/^#+\s+(.*)$/gm)].map((m) =>
        slug(m[1] as string),
      ),
    )
  const broken = files
    .filter(({ path }) => path.endsWith('.md'))
    .flatMap(({ path, text }) => {
      const prose = text.replace(/```[\s\S]*?```/g, '').replace(/`[^`\n]*`/g, '')
      return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
        .map((match) => match[1] as string)
        .filter((link) => !/^[a-z][a-z+.-]*:/.test(link))
        .flatMap((link) => {
          const [file = '', anchor] = decodeURI(link).split('#')
          const target = file === '' ? path : normalize(join(dirname(path), file)).replace(/\/$/, '')
          if (!exists(target)) return [`${path}: ${link} is not there`]
          if (anchor !== undefined && target.endsWith('.md') && !anchors(target).has(anchor))
            return [`${path}: ${link} names no heading`]
          return []
        })
    })
  expect(broken).toEqual([])
})
