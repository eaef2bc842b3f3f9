import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Entry } from './list.ts'

/** A file that changed this shortly before it was looked at may change again within the same tick of the clock. */
const settled_ms = 2000

const fileOf = (home: string, directory: string): string =>
  join(home, 'cache', 'packed', createHash('sha256').update(directory).digest('hex').slice(0, 32))

/** Everything that tells one state of the files from another without reading them. */
const fingerprint = (entries: readonly Entry[]): string => {
  const hash = createHash('sha256')
  for (const { path, kind, bytes, mode, mtimeMs, ctimeMs, inode } of entries)
    hash.update(`${JSON.stringify([path, kind, bytes, mode, mtimeMs, kind === 'directory' ? 0 : ctimeMs, inode])}\n`)
  return hash.digest('hex')
}

const isSettled = (entries: readonly Entry[], now: number): boolean =>
  entries.every(({ mtimeMs, ctimeMs }) => Math.max(mtimeMs, ctimeMs) < now - settled_ms)

/** The archive that these very files, untouched since, were packed into last; null: not known. */
export const knownArchive = async (
  home: string,
  directory: string,
  entries: readonly Entry[],
): Promise<string | null> => {
  const text = await readFile(fileOf(home, directory), 'utf8').catch(() => '')
  const [print, sha256] = text.split('\n')
  return print === fingerprint(entries) && sha256 !== undefined && /^[0-9a-f]{64}$/.test(sha256) ? sha256 : null
}

/** Remembers it, where the files are settled enough to be known again by their times. Failing here fails nothing. */
export const rememberArchive = async (
  home: string,
  directory: string,
  entries: readonly Entry[],
  sha256: string,
): Promise<void> => {
  if (!isSettled(entries, Date.now())) return
  const file = fileOf(home, directory)
  try {
    await mkdir(join(home, 'cache', 'packed'), { recursive: true, mode: 0o700 })
    const draft = `${file}.${process.pid}`
    await writeFile(draft, `${fingerprint(entries)}\n${sha256}\n`, { mode: 0o600 })
    await rename(draft, file)
  } catch {
    // a cache that cannot be written only costs time
  }
}
