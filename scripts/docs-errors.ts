/** Writes docs/errors.md from the error catalogue. */
import { writeFileSync } from 'node:fs'
import { errorsPage } from '../src/contract/errors-page.ts'

writeFileSync('docs/errors.md', errorsPage())
