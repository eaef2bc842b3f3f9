import { buildCommand } from '@stricli/core'
import { expect, test } from 'vitest'
import { splitAtCommand } from './boundary.ts'
import type { Cli } from './context.ts'

const run = buildCommand<{ detach: boolean; name?: string; noSpot: boolean; env?: readonly string[] }, string[], Cli>({
  func: async () => {},
  parameters: {
    flags: {
      detach: { kind: 'boolean', brief: '' },
      noSpot: { kind: 'boolean', brief: '', withNegated: false },
      name: { kind: 'parsed', parse: String, brief: '', optional: true },
      env: { kind: 'parsed', parse: String, brief: '', optional: true, variadic: true },
    },
    aliases: { d: 'detach', e: 'env' },
    positional: { kind: 'array', parameter: { brief: '', parse: String } },
  },
  docs: { brief: '' },
})
const split = (line: string) => splitAtCommand(line.split(' '), run).join(' ')

test('after the first word that is no flag everything is the command', () => {
  expect(split('run python3 train.py --name x')).toBe('run -- python3 train.py --name x')
  expect(split('run --name x python3 --name y')).toBe('run --name x -- python3 --name y')
  expect(split('run -d -e A=1 --no-spot node a.js -d')).toBe('run -d -e A=1 --no-spot -- node a.js -d')
  expect(split('run --name=x node')).toBe('run --name=x -- node')
  expect(split('run node --help')).toBe('run -- node --help')
})

test('a -- that was typed stays the only one', () => {
  expect(split('run --name x -- node -- a')).toBe('run --name x -- node -- a')
  expect(split('run --detach')).toBe('run --detach')
})
