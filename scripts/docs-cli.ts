/** Writes docs/cli.md from the commands' help. */
import { writeFileSync } from 'node:fs'
import { commandsPage } from '../src/cli/docs.ts'

writeFileSync('docs/cli.md', await commandsPage())
