import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LockedError, takeLock } from '../../src/store/index.ts'

const holder = fileURLToPath(new URL('../support/store-holder.ts', import.meta.url))
let directory: string
let child: ChildProcess | null = null
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'portal-lock-'))
})
afterEach(() => {
  child?.kill('SIGKILL')
  child = null
  rmSync(directory, { recursive: true, force: true })
})

/** Gives the pid of a process that the holder started. */
async function heldByAnother(): Promise<number> {
  child = spawn(process.execPath, [holder, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [told] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  return Number(String(told))
}
const refusal = (): LockedError | null => {
  try {
    takeLock(join(directory, 'serve.lock'), 0).release()
    return null
  } catch (error) {
    if (error instanceof LockedError) return error
    throw error
  }
}

test('a second process is refused, and told who holds the directory and since when', async () => {
  const grandchild = await heldByAnother()
  try {
    const refused = refusal()
    expect(refused?.holder).toEqual({ pid: child?.pid, since: 1_800_000_000_000 })
    expect(refused?.message).toContain(`process ${child?.pid} since 2027-01-15T08:00:00.000Z`)
  } finally {
    process.kill(grandchild, 'SIGKILL')
  }
})

test('after kill -9 the next one has it at once, though a process of the killed one lives', async () => {
  const grandchild = await heldByAnother()
  try {
    const exited = once(child as ChildProcess, 'exit')
    child?.kill('SIGKILL')
    await exited
    takeLock(join(directory, 'serve.lock'), 5).release()
    expect(process.kill(grandchild, 0)).toBe(true)
  } finally {
    process.kill(grandchild, 'SIGKILL')
  }
})

test('within one process it is refused as well, and asking does not loosen it', async () => {
  const lock = takeLock(join(directory, 'serve.lock'), 7)
  expect(refusal()?.holder).toEqual({ pid: process.pid, since: 7 })
  child = spawn(process.execPath, [holder, directory], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr?.on('data', (bytes) => (said += bytes))
  expect(await once(child, 'exit')).toEqual([1, null])
  expect(said).toContain(`held by process ${process.pid} since`)
  lock.release()
  lock.release()
  expect(refusal()).toBeNull()
})

test('what a dead or damaged note says decides nothing; the files are their owner’s alone', async () => {
  writeFileSync(join(directory, 'serve.lock.json'), '{"pid": "1; rm", "since"')
  const lock = takeLock(join(directory, 'serve.lock'), 9)
  for (const name of ['serve.lock', 'serve.lock.json']) expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600)
  writeFileSync(join(directory, 'serve.lock.json'), '{"pid": 999999999, "since": 1}')
  expect(refusal()).toMatchObject({ code: 'store_locked', holder: null })
  lock.release()
})
