import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { takeLock } from './lock.ts'

const folder = mkdtempSync(join(tmpdir(), 'portal-lock-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const elsewhere = (path: string, then = ''): string => {
  const code = `import { takeLock } from ${JSON.stringify(new URL('lock.ts', import.meta.url).href)}
    process.stdout.write(String(takeLock(${JSON.stringify(path)}) !== null)); ${then}`
  return spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }).stdout
}

test('one holder at a time, this process or another', () => {
  const path = join(folder, 'one')
  const lock = takeLock(path)
  expect(takeLock(path)).toBeNull()
  expect(elsewhere(path)).toBe('false')
  lock?.release()
  expect(elsewhere(path)).toBe('true')
})

test('a holder that is killed holds nothing', () => {
  const path = join(folder, 'killed')
  expect(elsewhere(path, 'process.kill(process.pid, "SIGKILL")')).toBe('true')
  const lock = takeLock(path)
  expect(lock).not.toBeNull()
  lock?.release()
})
