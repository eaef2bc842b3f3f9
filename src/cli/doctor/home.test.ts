import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { guarded, ok } from './check.ts'
import { checkpointDirectory, home, token } from './home.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portal-doctor-'))
  chmodSync(folder, 0o700)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('a data directory is private, a directory, and may be missing', async () => {
  expect((await home(folder)).is).toBe('ok')
  chmodSync(folder, 0o755)
  expect(await home(folder)).toMatchObject({ is: 'fail', advice: `chmod 700 ${folder}` })
  writeFileSync(join(folder, 'file'), '')
  expect((await home(join(folder, 'file'))).is).toBe('fail')
  mkdirSync(join(folder, 'real'), { mode: 0o700 })
  symlinkSync(join(folder, 'real'), join(folder, 'link'))
  expect((await home(join(folder, 'link'))).is).toBe('ok')
  expect((await home(join(folder, 'none'))).is).toBe('ok')
})

test('a token is private, whole, and may be missing', async () => {
  const path = join(folder, 'token')
  expect((await token(path)).is).toBe('ok')
  writeFileSync(path, `${'x'.repeat(43)}\n`, { mode: 0o600 })
  expect((await token(path)).is).toBe('ok')
  chmodSync(path, 0o644)
  expect((await token(path)).advice).toContain(`chmod 600 ${path}`)
  chmodSync(path, 0o600)
  writeFileSync(path, 'short')
  expect((await token(path)).is).toBe('fail')
})

test('K-WHOLE-1 a checkpoint directory makes a hard link once, and the look leaves nothing behind', async () => {
  expect((await checkpointDirectory(folder)).is).toBe('ok')
  expect(readdirSync(folder)).toEqual([])
  expect((await checkpointDirectory('/proc')).is).toBe('fail')
})

test('a look that throws is a finding, and the doctor goes on', async () => {
  const broken = await guarded('clock', () => Promise.reject(new Error('no clock')))
  expect(broken).toMatchObject([{ name: 'clock', is: 'fail', says: 'could not be checked: no clock' }])
  expect(await guarded('clock', async () => [ok('a', ''), ok('b', '')])).toHaveLength(2)
})
