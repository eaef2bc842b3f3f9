import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A disk of a test's own that is soon full. */
export interface SmallDisk {
  readonly path: string
  grow(mebibytes: number): void
  remove(): void
}

/** Why none can be mounted here; null: one can. */
export function whyNoSmallDisk(): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'portal-disk-'))
  try {
    mountSmallDisk(folder, 1).remove()
    return null
  } catch {
    return 'no small disk can be mounted here'
  } finally {
    rmdirSync(folder)
  }
}

/** Puts a disk of so many MiB at `path`. Throws where that is not permitted. */
export function mountSmallDisk(path: string, mebibytes: number): SmallDisk {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=700`, 'portal-test', path], { stdio: 'pipe' })
  return {
    path,
    grow: (to) => void execFileSync('mount', ['-o', `remount,size=${to}m`, path], { stdio: 'pipe' }),
    // lazily: a process that is just ending may still have a file open there
    remove: () => void execFileSync('umount', ['--lazy', path], { stdio: 'pipe' }),
  }
}
