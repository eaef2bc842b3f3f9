/** The archives that travel: working directories on their way to machines, outputs on their way home. */
import { createReadStream, existsSync } from 'node:fs'
import { open, readdir, rm, stat } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { list, Pack, type ReadEntry } from 'tar'
import { limits } from '../../contract/schemas.ts'
import { keepFile, receiveFile, removePartial, type Received } from './receive.ts'

/** Working directories by the sha256 of their archive. */
export interface Workdirs {
  has(sha256: string): Promise<boolean>
  receive(incoming: IncomingMessage, sha256: string): Promise<Received>
  /** null: never sent */
  read(sha256: string): Promise<Opened | null>
  /** For the collector: no job needs it any more. */
  remove(sha256: string): Promise<void>
}

/** The name under which the outputs of an attempt lie that still runs. */
export const soFar = (attempt: string): string => `${attempt}.so-far`

const beside = '.at-'
/** The name under which the outputs lie that a checkpoint of an attempt carries. */
export const carriedAt = (attempt: string, slot: number): string => `${attempt}${beside}${slot}`

/** Declared outputs by the name of their archive: an attempt's as it left them, those so far, or a checkpoint's. */
export interface Outputs {
  /** @param still asked once they are whole, before they replace the ones before: throws when the attempt is over */
  receive(incoming: IncomingMessage, name: string, still: () => Promise<void>): Promise<Received>
  /** @param path a declared output or something inside it; null: all. Answers null when there is no such thing. */
  read(name: string, path: string | null): Promise<Opened | null>
  /** Keeps those that a checkpoint carries (`carriedAt`), so that parts of them can be read, in place of an older one's. */
  take(name: string, pieces: AsyncIterable<Uint8Array>): Promise<void>
  remove(name: string): Promise<void>
  kept(name: string): boolean
}

export interface Opened {
  readonly stream: Readable
  /** null: not known beforehand */
  readonly bytes: number | null
}

/** @param folder created when it is needed, private */
export async function openWorkdirs(folder: string): Promise<Workdirs> {
  await removePartial(folder)
  const file = (sha256: string) => join(folder, `${sha256}.tar`)
  return {
    has: async (sha256) => (await stat(file(sha256)).catch(() => null)) !== null,
    receive: (incoming, sha256) =>
      receiveFile(incoming, { folder, name: `${sha256}.tar`, limitBytes: limits.workdir, sha256 }),
    read: (sha256) => openFile(file(sha256)),
    remove: (sha256) => rm(file(sha256), { force: true }),
  }
}

/** @param folder created when it is needed, private */
export async function openOutputs(folder: string): Promise<Outputs> {
  await removePartial(folder)
  const file = (name: string) => join(folder, `${name}.tar`)
  return {
    receive: (incoming, name, still) =>
      receiveFile(incoming, { folder, name: `${name}.tar`, limitBytes: limits.outputs, sha256: null, still }),
    read: (name, path) => (path === null ? openFile(file(name)) : openPart(file(name), path)),
    take: async (name, pieces) => {
      await keepFile(pieces, folder, `${name}.tar`)
      // of an attempt's checkpoints only the newest is asked for
      const attempt = name.slice(0, name.indexOf(beside) + beside.length)
      const older = (await readdir(folder)).filter((one) => one.startsWith(attempt) && one !== `${name}.tar`)
      for (const one of older) await rm(join(folder, one), { force: true })
    },
    remove: (name) => rm(file(name), { force: true }),
    kept: (name) => existsSync(file(name)),
  }
}

async function openFile(file: string): Promise<Opened | null> {
  const handle = await open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (handle === null) return null
  const { size } = await handle.stat()
  return { stream: createReadStream('', { fd: handle }), bytes: size }
}

/** A tar of what lies at or under a path of a tar; null where nothing does. One entry is in memory at a time. */
async function openPart(file: string, path: string): Promise<Opened | null> {
  if ((await stat(file).catch(() => null)) === null) return null
  const wanted = normal(path)
  const pack = new Pack({ portable: true })
  const stream = pack as unknown as Readable
  return new Promise((resolve, reject) => {
    let found = false
    const read = async () => {
      await list({
        file,
        noResume: true,
        filter: (entry) => isWithin(normal(entry), wanted),
        onReadEntry: (entry: ReadEntry) => {
          pack.add(entry)
          if (!found) resolve({ stream, bytes: null })
          found = true
        },
      })
      pack.end()
      if (!found) resolve(null)
    }
    read().catch((error: unknown) => {
      pack.emit('error', error)
      reject(error as Error)
    })
  })
}

const normal = (path: string): string => path.replace(/^(\.?\/)+/, '').replace(/\/+$/, '')

const isWithin = (entry: string, wanted: string): boolean =>
  !entry.split('/').includes('..') &&
  (wanted === '' || wanted === '.' || entry === wanted || entry.startsWith(`${wanted}/`))
