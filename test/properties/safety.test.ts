import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { editsOf, mutants } from './safety.ts'

const root = resolve(import.meta.dirname, '../..')

test.each(mutants)('the line of safety is there, once: without it $what', (mutant) => {
  for (const { file, from } of editsOf(mutant))
    expect(readFileSync(resolve(root, file), 'utf8').split(from), `${file}: ${from}`).toHaveLength(2)
})
