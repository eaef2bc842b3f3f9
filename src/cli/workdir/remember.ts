import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry } from './list.ts'

/** A file that changed this shortly before it was looked at may change again within the same tick of the clock. */
const settled_ms = 2000

/** Where a directory's is kept. Two directories of one name here only forget each other's. */
const fileOf = (home: string, directory: string): string => join(home, 'cache', 'packed', hashed(directory))

/** FNV-1a, twice: loading Node's own hashes takes 3 ms, more than looking at a small directory. */
const hashed = (text: string): string => {
  let [one, two] = [0x811c9dc5, 0x1000193]
  for (const byte of Buffer.from(text)) {
    one = Math.imul(one ^ byte, 0x1000193)
    two = Math.imul(two ^ byte, 0x85ebca6b)
  }
  return [one, two].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

/** Everything that tells one state of the files from another without reading them. */
const fingerprint = (directory: string, entries: readonly Entry[]): string =>
  JSON.stringify([
    directory,
    entries.map(({ path, kind, bytes, mode, mtimeMs, ctimeMs, inode }) => [
      path,
      kind,
      bytes,
      mode,
      mtimeMs,
      kind === 'directory' ? 0 : ctimeMs,
      inode,
    ]),
  ])

const isSettled = (entries: readonly Entry[], now: number): boolean =>
  entries.every(({ mtimeMs, ctimeMs }) => Math.max(mtimeMs, ctimeMs) < now - settled_ms)

/** The archive that these very files, untouched since, were packed into last; null: not known. */
export const knownArchive = (home: string, directory: string, entries: readonly Entry[]): string | null => {
  const text = readOr(fileOf(home, directory))
  const [sha256, print] = text.split('\n')
  return sha256 !== undefined && /^[0-9a-f]{64}$/.test(sha256) && print === fingerprint(directory, entries)
    ? sha256
    : null
}

const readOr = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** Remembers it, where the files are settled enough to be known again by their times. Failing here fails nothing. */
export const rememberArchive = (home: string, directory: string, entries: readonly Entry[], sha256: string): void => {
  if (!isSettled(entries, Date.now())) return
  const file = fileOf(home, directory)
  try {
    mkdirSync(join(home, 'cache', 'packed'), { recursive: true, mode: 0o700 })
    const draft = `${file}.${process.pid}`
    writeFileSync(draft, `${sha256}\n${fingerprint(directory, entries)}\n`, { mode: 0o600 })
    renameSync(draft, file)
  } catch {
    // a cache that cannot be written only costs time
  }
}
