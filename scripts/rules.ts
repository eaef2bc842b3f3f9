/**
 * Leads from a rule to its words, its code and its proof: `npm run rules -- J-STRICT-1`. Without a name it lists every rule with
 * the tests that name it, and those that nothing proves yet.
 */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'

interface Rule {
  readonly name: string
  readonly at: string
  readonly words: string
}

const isTest = (path: string): boolean => /test/.test(path)

/** Every rule of docs/rules: a paragraph, or several in a row that begin with their names. */
const rules: readonly Rule[] = globSync('docs/rules/*.md')
  .toSorted()
  .flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, n) => {
        const parts = line.split(/(?=\*\*[JKC]-[A-Z]+-\d+\*\*)/).filter((part) => /^\*\*[JKC]-/.test(part))
        return parts.map((words) => ({
          name: words.slice(2, words.indexOf('**', 2)),
          at: `${file}:${n + 1}`,
          words: words.trim(),
        }))
      }),
  )

const named = execFileSync('git', ['grep', '-nE', '[JKC]-[A-Z]+-[0-9]+', '--', 'src', 'sdk', 'test'], {
  encoding: 'utf8',
  maxBuffer: 64 << 20,
})
  .trim()
  .split('\n')
  .map((line) => {
    const [path = '', number = '', ...rest] = line.split(':')
    return { path, at: `${path}:${number}`, text: rest.join(':').trim() }
  })
const naming = (rule: string) => named.filter(({ text }) => new RegExp(`\\b${rule}\\b`).test(text))

/** Comment marks say nothing here; a line that is too long ends in an ellipsis. */
const clip = (text: string): string => {
  const words = text.replace(/^(\/\*\*?|\*|\/\/|#)\s*/, '')
  return words.length > 110 ? `${words.slice(0, 109)}…` : words
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !rules.some((rule) => rule.name === name))
if (unknown.length > 0) {
  console.error(`there is no rule ${unknown.join(', ')}; \`npm run rules\` lists all`)
  process.exitCode = 2
}

for (const { name, at, words } of rules) {
  if (asked.length === 0) {
    const tests = naming(name).filter(({ path }) => isTest(path))
    console.log(`${name.padEnd(12)} ${tests.length > 0 ? tests.map((one) => one.at).join('  ') : '-'}`)
  } else if (asked.includes(name)) {
    console.log(`${words}\n  ${at}\n`)
    for (const [title, wanted] of [
      ['decided in', false],
      ['proven by', true],
    ] as const) {
      console.log(title)
      for (const one of naming(name).filter(({ path }) => isTest(path) === wanted))
        console.log(`  ${one.at.padEnd(48)} ${clip(one.text)}`)
    }
  }
}
