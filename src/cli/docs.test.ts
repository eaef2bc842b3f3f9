import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandNames } from './commands/index.ts'
import { commandsPage } from './docs.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/cli.md'), 'utf8')

test("docs/cli.md is the commands' own help (node scripts/docs-cli.ts writes it)", async () => {
  expect(page).toBe(await commandsPage())
})

test.each(commandNames)('portal %s has its examples in its help', (name) => {
  const sections = page.split('\n## ').filter((section) => section.startsWith(`portal ${name}`))
  expect(sections.length).toBeGreaterThan(0)
  for (const section of sections) expect(section).toMatch(/EXAMPLES\n.*portal /)
})
