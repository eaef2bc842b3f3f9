import type { BigIntStats } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { RefusedValue } from '../../core/jobs/model.ts'

/** More files than this are no output but a mistake; they would not be carried in a reasonable time. */
const mostEntries = 1_000_000
const mostRefused = 1000

export interface Found {
  /** relative to the working directory, joined by `/` */
  readonly path: string
  readonly is: 'file' | 'directory' | 'link'
  readonly stats: BigIntStats
  /** of a link */
  readonly target: string | null
}

export interface Looked {
  readonly found: readonly Found[]
  readonly refused: readonly RefusedValue[]
}

/** Refused files, all of them up to a thousand, then one that counts the rest. */
export const refusals = () => {
  const refused: RefusedValue[] = []
  let count = 0
  return {
    add: (path: string, type: string, reason: string, advice: string): void => {
      if (++count <= mostRefused) refused.push({ path, type, reason, advice })
    },
    all: (): readonly RefusedValue[] =>
      count <= mostRefused
        ? refused
        : [
            ...refused,
            {
              path: '…',
              type: 'files',
              reason: `and ${count - mostRefused} more`,
              advice: 'declare only what can be carried as an output',
            },
          ],
  }
}

/**
 * Looks at all declared outputs of a working directory before any is read: what is there, and what cannot be carried
 * (K-STRICT-3). One that is not there yet is nothing: the job may not have come to it.
 */
export const lookAtOutputs = async (root: string, outputs: readonly string[]): Promise<Looked> => {
  const found: Found[] = []
  const seen = new Set<string>()
  const { add, all } = refusals()

  const look = async (path: string): Promise<void> => {
    if (seen.has(path)) return
    seen.add(path)
    if (found.length >= mostEntries) return add(path, 'files', `more than ${mostEntries} files`, 'declare fewer')
    if (path.includes('\n')) return add(path, 'file', 'a name with a line break', 'rename it')
    let stats
    try {
      stats = await lstat(join(root, path), { bigint: true })
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code
      if (code === 'ENOENT' || code === 'ENOTDIR') return
      return add(path, 'file', `cannot be looked at (${code})`, 'make it readable')
    }
    if (stats.isDirectory()) {
      found.push({ path, is: 'directory', stats, target: null })
      let names
      try {
        names = await readdir(join(root, path))
      } catch (error) {
        return add(path, 'directory', `cannot be read (${(error as NodeJS.ErrnoException).code})`, 'make it readable')
      }
      for (const name of names.sort()) await look(`${path}/${name}`)
      return
    }
    if (stats.isFile()) {
      found.push({ path, is: 'file', stats, target: null })
      return
    }
    if (stats.isSymbolicLink()) {
      const target = await readlink(join(root, path))
      if (staysInside(path, target)) found.push({ path, is: 'link', stats, target })
      else add(path, 'symbolic link', `leads out of the working directory, to ${target}`, 'put the file itself there')
      return
    }
    const [type, advice] = stats.isSocket()
      ? ['socket', 'close it in job.on_suspend']
      : stats.isFIFO()
        ? ['FIFO', 'remove it in job.on_suspend']
        : ['device', 'keep devices out of outputs']
    add(path, type as string, 'belongs to this machine', advice as string)
  }

  const whole = outputs.some(isWhole)
  for (const output of whole ? (await readdir(root)).sort() : outputs) {
    const path = insidePath(output)
    if (path === null) {
      add(output, 'path', 'is not inside the working directory', 'declare a relative path without `..`')
      continue
    }
    const outside = await linkAbove(root, path)
    if (outside) add(outside, 'symbolic link', 'an output lies behind it', 'declare the output where it really is')
    else await look(path)
  }
  return { found, refused: all() }
}

/** Whether a declared output is the working directory itself. */
const isWhole = (output: string): boolean =>
  !output.startsWith('/') && output.split('/').every((part) => part === '' || part === '.')

/** A declared or stored path, tidied; null: it leaves the directory, or is the whole of it. */
export const insidePath = (path: string): string | null => {
  if (path.startsWith('/') || path.includes('\0')) return null
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  return parts.length === 0 || parts.includes('..') ? null : parts.join('/')
}

/**
 * Whether a link at `path` leads to a place inside, whatever other links lie on the way: `..` only at its beginning,
 * where it counts real directories, and not more of them than there are above the link.
 */
export const staysInside = (path: string, target: string): boolean => {
  if (target.startsWith('/') || target === '' || target.includes('\0') || target.includes('\n')) return false
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  const up = parts.findIndex((part) => part !== '..')
  const ups = up === -1 ? parts.length : up
  return ups <= path.split('/').length - 1 && !parts.slice(ups).includes('..')
}

/** The first part of a path's folders that is a link; null: there is none. */
const linkAbove = async (root: string, path: string): Promise<string | null> => {
  const parts = path.split('/')
  for (let i = 1; i < parts.length; i++) {
    const above = parts.slice(0, i).join('/')
    const stats = await lstat(join(root, above)).catch(() => null)
    if (stats?.isSymbolicLink()) return above
  }
  return null
}
