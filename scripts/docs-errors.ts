/** Writes the table of errors into docs/guide/troubleshooting.md from the catalogue. */
import { readFileSync, writeFileSync } from 'node:fs'
import { withErrors } from './docs/errors.ts'

const page = 'docs/guide/troubleshooting.md'
writeFileSync(page, withErrors(readFileSync(page, 'utf8')))
