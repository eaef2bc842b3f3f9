import { constants, type BigIntStats } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { Header, Pax } from 'tar'
import type { RefusedValue } from '../../core/jobs/model.ts'
import type { SaveWriter } from '../chain/model.ts'
import { lookAtOutputs, refusals, type Found } from './look.ts'
import { outputsStream } from './stream.ts'

const blockBytes = 512
const readBytes = 1 << 20

/**
 * Adds the declared outputs of a working directory to a save. What cannot be carried is named, all of it together, and
 * then nothing of it was written; a file that changes while it is read is named too. Anything named must refuse the save.
 */
export const saveOutputs = async (
  writer: SaveWriter,
  root: string,
  outputs: readonly string[],
): Promise<readonly RefusedValue[]> => {
  const { found, refused } = await lookAtOutputs(root, outputs)
  if (refused.length > 0 || found.length === 0) return refused
  const stream = writer.stream(outputsStream)
  const changed = await packFiles(root, found, (bytes) => stream.write(bytes))
  await stream.end()
  return changed
}

/** What a file may be when it is read, compared with what it was when it was found. */
type StillGood = (now: BigIntStats, found: BigIntStats) => boolean

/**
 * Writes an archive of what was found. Files that are not what they were when they were found are named; `good` says what that
 * means: by default that nothing of them changed, with `grown` that they became no shorter.
 */
export const packFiles = async (
  root: string,
  found: readonly Found[],
  write: (bytes: Uint8Array) => Promise<void>,
  good: StillGood = same,
): Promise<readonly RefusedValue[]> => {
  const { add, all } = refusals()
  const buffer = Buffer.allocUnsafeSlow(readBytes)
  for (const entry of found) {
    await write(headOf(entry))
    if (entry.is !== 'file') continue
    const why = await packFile(join(root, entry.path), entry.stats, buffer, write, good)
    if (why) {
      add(entry.path, 'file', why, 'stop writing it in job.on_suspend, or leave it out of the outputs')
      // the archive has a hole now, and the save is refused: the other files are only looked at
      const rest = found.slice(found.indexOf(entry) + 1)
      for (const { path, is, stats } of rest)
        if (is === 'file' && (await changedSince(join(root, path), stats, good)))
          add(
            path,
            'file',
            'changed while outputs were read',
            'stop writing it in job.on_suspend, or leave it out of the outputs',
          )
      return all()
    }
  }
  await write(Buffer.alloc(2 * blockBytes))
  return all()
}

/** Null: it was read whole and did not change. */
const packFile = async (
  path: string,
  stats: BigIntStats,
  buffer: Buffer,
  write: (bytes: Uint8Array) => Promise<void>,
  good: StillGood,
): Promise<string | null> => {
  let file
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    return `cannot be read (${(error as NodeJS.ErrnoException).code})`
  }
  try {
    if (!good(await file.stat({ bigint: true }), stats)) return 'changed before it was read'
    const size = Number(stats.size)
    for (let at = 0; at < size;) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(readBytes, size - at), at)
      if (bytesRead === 0) return 'became shorter while it was read'
      await write(buffer.subarray(0, bytesRead))
      at += bytesRead
    }
    const padding = (blockBytes - (size % blockBytes)) % blockBytes
    if (padding > 0) await write(Buffer.alloc(padding))
    return good(await file.stat({ bigint: true }), stats) ? null : 'changed while it was read'
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EIO') return 'cannot be read (EIO)'
    throw error
  } finally {
    await file.close()
  }
}

const changedSince = async (path: string, stats: BigIntStats, good: StillGood): Promise<boolean> => {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => null)
  if (!file) return true
  try {
    return !good(await file.stat({ bigint: true }), stats)
  } finally {
    await file.close()
  }
}

/** The same file, which was written on at most at its end: what was found of it is still there. */
export const grown: StillGood = (now, found) => now.ino === found.ino && now.dev === found.dev && now.size >= found.size

const same = (a: BigIntStats, b: BigIntStats): boolean =>
  a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs

/** Names, sizes and times always stand in the extended header, where they have no bounds. */
const headOf = ({ path, is, stats, target }: Found): Buffer => {
  const size = is === 'file' ? Number(stats.size) : 0
  const mtime = new Date(Number(stats.mtimeMs))
  const linkpath = target ?? undefined
  const extended = new Pax({ path, size, mtime, ...(linkpath === undefined ? {} : { linkpath }) }).encode()
  const head = Buffer.alloc(blockBytes)
  new Header({
    path: is === 'directory' ? `${path}/` : path,
    mode: Number(stats.mode) & 0o777,
    size,
    mtime,
    type: is === 'file' ? 'File' : is === 'directory' ? 'Directory' : 'SymbolicLink',
    ...(linkpath === undefined ? {} : { linkpath }),
  }).encode(head)
  return Buffer.concat([extended, head])
}
