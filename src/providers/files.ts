import { randomBytes } from 'node:crypto'
import { openSync, renameSync, statSync } from 'node:fs'
import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Makes a folder that only its owner can look into; one that is there already is closed to others too. */
export async function privateFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 })
  await chmod(path, 0o700)
}

/** Writes a file (0600) whole and durably: whoever reads it sees the old content or the new, never a part. */
export async function writePrivate(path: string, content: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(content)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await syncFolder(dirname(path))
}

/** A rename is durable once its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** The content of a file; null when there is none. */
export async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

/** Opens a process's log for appending (0600). One that has grown large is kept as `PATH.1`, in place of the one before. */
export function openLog(path: string, largest = 10 * 2 ** 20): number {
  try {
    if (statSync(path).size > largest) renameSync(path, `${path}.1`)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
  return openSync(path, 'a', 0o600)
}

/** The last bytes of a text file, for an error message; empty when it cannot be read. */
export async function tail(path: string, bytes = 2000): Promise<string> {
  try {
    const text = await readFile(path, 'utf8')
    return text.slice(-bytes).trim()
  } catch {
    return ''
  }
}

export const codeOf = (error: unknown): string | null =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
