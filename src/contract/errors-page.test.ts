import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { errorsPage } from './errors-page.ts'

test('docs/errors.md is the error catalogue (node scripts/docs-errors.ts writes it)', () => {
  expect(readFileSync(join(import.meta.dirname, '../../docs/errors.md'), 'utf8')).toBe(errorsPage())
})
