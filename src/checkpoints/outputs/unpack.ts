import { constants } from 'node:fs'
import { chmod, lstat, mkdir, open, rm, symlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { Parser, type ReadEntry } from 'tar'
import type { Chain, Manifest } from '../chain/model.ts'
import { openStreams } from '../chain/streams.ts'
import { insidePath, staysInside } from './look.ts'
import { outputsStream } from './stream.ts'

/** An archive holds what no archive of ours does. Nothing was written outside the directory. */
export class OutputsError extends Error {
  override readonly name = 'OutputsError'
}

/**
 * Puts the outputs that a checkpoint carries into the working directory `root`, in place of what has their names there.
 * Nothing where it carries none. Throws `DamageError`, `OutputsError`, and what the file system says.
 */
export const restoreOutputs = async (chain: Chain, manifest: Manifest, root: string): Promise<void> => {
  if (!manifest.streams.some(({ name }) => name === outputsStream)) return
  const pieces = openStreams(chain, manifest, (name) => name === outputsStream)
  await unpackFiles(
    root,
    (async function* () {
      // the parser keeps parts of what it gets, and a piece is only lent
      for await (const { bytes } of pieces) yield Buffer.from(bytes)
    })(),
  )
}

/** Unpacks an archive below `root`: files, directories and links that stay inside, nothing else, through no link. */
export const unpackFiles = async (root: string, archive: AsyncIterable<Buffer>): Promise<void> => {
  const place = unpacker(root)
  const parser = new Parser({ strict: true, maxMetaEntrySize: 1 << 20, brotli: false, zstd: false })
  const failed = Promise.withResolvers<never>()
  // it may fail while nobody waits
  failed.promise.catch(() => {})
  let working: Promise<void> = Promise.resolve()
  let entries = 0
  parser.on('entry', (entry: ReadEntry) => {
    entries++
    working = working.then(() => place.entry(entry))
    working.catch((error: unknown) => {
      failed.reject(error)
      entry.resume()
    })
  })
  parser.on('error', (error: Error) => failed.reject(new OutputsError(`not an archive of outputs: ${error.message}`)))
  parser.on('warn', (_code: string, message: string) =>
    failed.reject(new OutputsError(`not an archive of outputs: ${message}`)),
  )
  parser.on('ignoredEntry', (entry: ReadEntry) =>
    failed.reject(new OutputsError(`${entry.path}: neither a file, a directory nor a link`)),
  )
  const ended = new Promise<void>((resolve) => parser.once('end', () => resolve()))
  for await (const bytes of archive) {
    if (parser.write(bytes)) continue
    await Promise.race([new Promise((resolve) => parser.once('drain', resolve)), failed.promise])
  }
  parser.end()
  await Promise.race([ended, failed.promise])
  await Promise.race([working, failed.promise])
  // an archive of ours has entries; without any these were other bytes
  if (entries === 0) throw new OutputsError('not an archive of outputs: nothing is in it')
  await place.finish()
}

/** Writes entries one after the other; links and the times of directories come last, so that nothing goes through them. */
const unpacker = (root: string) => {
  const real = new Set<string>()
  const links: { readonly path: string; readonly target: string }[] = []
  const directories: { readonly path: string; readonly mode: number; readonly mtime: Date }[] = []

  /** Makes the folders of a path; a link or a file in the place of one makes room: it is older than the checkpoint. */
  const folders = async (path: string): Promise<void> => {
    if (real.has(path)) return
    const above = path.lastIndexOf('/')
    if (above > 0) await folders(path.slice(0, above))
    const full = join(root, path)
    const there = await lstat(full).catch(() => null)
    if (there && !there.isDirectory()) await rm(full)
    if (!there?.isDirectory()) await mkdir(full, 0o700)
    real.add(path)
  }
  const makeRoom = async (path: string): Promise<string> => {
    const above = path.lastIndexOf('/')
    if (above > 0) await folders(path.slice(0, above))
    if (real.has(path)) throw new OutputsError(`${path}: a directory and something else in one archive`)
    const full = join(root, path)
    await rm(full, { recursive: true, force: true })
    return full
  }
  const writeFile = async (entry: ReadEntry, path: string): Promise<void> => {
    const full = await makeRoom(path)
    const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW
    const file = await open(full, flags, 0o600)
    try {
      let at = 0
      for await (const bytes of entry) {
        for (let done = 0; done < bytes.length;)
          done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten
        at += bytes.length
      }
      if (at !== entry.size) throw new OutputsError(`${path}: ${at} of ${entry.size} bytes`)
      await file.chmod((entry.mode ?? 0o600) & 0o777)
      const mtime = entry.mtime ?? new Date(0)
      await file.utimes(mtime, mtime)
    } finally {
      await file.close()
    }
  }

  return {
    entry: async (entry: ReadEntry): Promise<void> => {
      const path = insidePath(entry.path)
      if (path === null) throw new OutputsError(`${JSON.stringify(entry.path)} would lie outside the working directory`)
      if (entry.type === 'File') return await writeFile(entry, path)
      if (entry.type === 'Directory') {
        await folders(path)
        directories.push({ path, mode: (entry.mode ?? 0o700) & 0o777, mtime: entry.mtime ?? new Date(0) })
      } else if (entry.type === 'SymbolicLink') {
        const target = entry.linkpath ?? ''
        if (!staysInside(path, target))
          throw new OutputsError(`${path} is a link that leaves the working directory, to ${target}`)
        links.push({ path, target })
      } else throw new OutputsError(`${path} is ${entry.type}, which no output is`)
      entry.resume()
    },
    finish: async (): Promise<void> => {
      for (const { path, target } of links) await symlink(target, await makeRoom(path))
      for (const { path, mode, mtime } of directories.toReversed()) {
        const full = join(root, path)
        await chmod(full, mode)
        await utimes(full, mtime, mtime)
      }
    },
  }
}
