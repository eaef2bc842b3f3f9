/** Lists every rule of docs/rules with the tests that name it, and those that nothing proves yet. */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'

const rule = /\*\*([JKC]-[A-Z]+-\d+)\*\*/g
const tests = execFileSync('git', ['grep', '-nEo', '[JKC]-[A-Z]+-[0-9]+', '--', '*.test.ts', '*test*.py'], {
  encoding: 'utf8',
})
  .trim()
  .split('\n')
  .map((line) => line.split(':') as [string, string, string])

for (const file of globSync('docs/rules/*.md').sort())
  for (const [, name] of readFileSync(file, 'utf8').matchAll(rule)) {
    const where = tests.filter(([, , named]) => named === name).map(([path, line]) => `${path}:${line}`)
    console.log(`${name?.padEnd(12)} ${where.length > 0 ? where.join('  ') : '-'}`)
  }
