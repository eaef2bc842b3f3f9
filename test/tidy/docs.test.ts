import { expect, test } from 'vitest'
import { withErrors } from '../../scripts/docs/errors.ts'
import { files } from './files.ts'

test('the table of errors is the catalogue: node scripts/docs-errors.ts writes it', () => {
  const page = files.find(({ path }) => path === 'docs/guide/troubleshooting.md')?.text ?? ''
  expect(page).toContain('job_not_found')
  expect(withErrors(page)).toBe(page)
})
