import { expect, test } from 'vitest'
import { isOlder } from './version.ts'

test.each([
  ['0.1.0', '0.2.0', true],
  ['0.10.0', '0.9.9', false],
  ['1.0.0', '1.0.0', false],
  ['1.0.0-rc.2', '1.0.0', true],
  ['1.0.0', '1.0.0-rc.2', false],
  ['1.0.0-rc.2', '1.0.0-rc.10', true],
  ['dev', '1.0.0', false],
  ['1.0.0', '', false],
])('%s is older than %s: %s', (one, other, older) => expect(isOlder(one, other)).toBe(older))
