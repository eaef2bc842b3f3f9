import { constants } from 'node:fs'
import { mkdir, open, unlink, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StoreError, type StoreFault } from '../errors.ts'

const faults: Readonly<Record<string, StoreFault>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EFBIG: 'full',
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'read-only',
  EEXIST: 'exists',
}

const said: Readonly<Record<StoreFault, string>> = {
  full: 'no room left; free some, or keep checkpoints elsewhere',
  denied: 'not allowed; check who owns the folder',
  'read-only': 'the file system is read-only',
  'bad-key': 'not a key',
  exists: 'another object has this key',
  io: 'the system refused',
}

export const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | null)?.code

/** An error of the system as one of the store's, by name. */
export const storeError = (error: unknown, doing: string): StoreError => {
  if (error instanceof StoreError) return error
  const code = codeOf(error)
  const fault = (code && faults[code]) || 'io'
  return new StoreError(fault, `${doing}: ${said[fault]} (${code ?? String(error)})`, { cause: error })
}

/** Does it; what the system throws becomes an error of the store's. */
export const trying = async <T>(doing: string, act: () => Promise<T>): Promise<T> => {
  try {
    return await act()
  } catch (error) {
    throw storeError(error, doing)
  }
}

export const newFile = (path: string): Promise<FileHandle> =>
  open(path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW, 0o600)

export const writeAll = async (file: FileHandle, bytes: Uint8Array, at: number): Promise<void> => {
  for (let done = 0; done < bytes.length;)
    done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten
}

/** Makes the names in a folder durable: a file that was fsynced can still lose its name. */
export const syncFolder = async (path: string): Promise<void> => {
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/**
 * Makes folders below `root`, private, with the name of each durable. One that another process made may not be durable
 * yet, so each is synced once by this process too.
 */
export const folderMaker = (root: string) => {
  const durable = new Set<string>()
  return async (path: string): Promise<void> => {
    const made = await mkdir(path, { recursive: true, mode: 0o700 })
    if (made === undefined && durable.has(path)) return
    for (let folder = path; folder.length > root.length; folder = dirname(folder)) await syncFolder(dirname(folder))
    if (durable.size > 10_000) durable.clear()
    durable.add(path)
  }
}

export const removeIfThere = (path: string): Promise<void> =>
  unlink(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error
  })

/** Null: it is not there. A link in its place is an error. */
export const openToRead = async (path: string) => {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null
    throw error
  }
}

/** The whole file, or of a longer one the first `atMost` bytes; null: it is not there. */
export const readWhole = async (path: string, atMost: number): Promise<Uint8Array | null> => {
  const file = await openToRead(path)
  if (!file) return null
  try {
    const { size } = await file.stat()
    if (size <= atMost) return await file.readFile()
    const start = Buffer.alloc(atMost)
    await file.read(start, 0, atMost, 0)
    return start
  } finally {
    await file.close()
  }
}
