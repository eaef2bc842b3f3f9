import { randomBytes } from 'node:crypto'
import { link, mkdir, readdir, readFile, rename, rmdir, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { checkJob, checkKey, checkPrefix, checkSlot, slotName } from '../keys.ts'
import type { CheckpointStore } from '../port.ts'
import {
  codeOf,
  folderMaker,
  newFile,
  openToRead,
  readWhole,
  removeIfThere,
  syncFolder,
  trying,
  writeAll,
} from './files.ts'
import { networkName } from './network.ts'
import { objectWriter } from './writer.ts'

/** A temporary file this old belongs to a writer that is gone: one that writes touches it all the time. */
const staleAfter_ms = 24 * 3_600_000
/** A record with all its values and the SDK's meta is far below that; of a longer one only so much is read, and refused by its reader. */
const maxSlotBytes = 96 << 20

export interface DirectoryStore extends CheckpointStore {
  readonly root: string
  /** the kind of network file system that it lies on; null: a local one. `doctor` says what that means. */
  readonly network: string | null
}

/**
 * Checkpoints in a directory: `slots/JOB/000001` and `objects/KEY`. A file gets its name by `link` after its bytes are
 * on the disk, since `rename` would overwrite in silence; so a name always stands for the whole, and two writers of a
 * slot have one winner. Throws `StoreError`.
 */
export const directoryStore = async (folder: string): Promise<DirectoryStore> => {
  const root = resolve(folder)
  const slotsFolder = join(root, 'slots')
  const objects = join(root, 'objects')
  const temporary = join(root, 'tmp')
  const folderAt = folderMaker(root)

  const network = await trying(`open the checkpoint directory ${root}`, async () => {
    await mkdir(root, { recursive: true, mode: 0o700 })
    for (const path of [slotsFolder, objects, temporary]) await folderAt(path)
    await removeStale(temporary)
    return networkName((await statfs(root)).type)
  })

  const temporaryFile = () => join(temporary, `${process.pid}-${randomBytes(8).toString('hex')}`)
  const slotPath = (job: string, slot: number) => {
    checkJob(job)
    checkSlot(slot)
    return join(slotsFolder, job, slotName(slot))
  }
  const objectPath = (key: string) => join(objects, ...checkKey(key))

  /** A durable file without a name of its own yet; `use` gives it one. */
  const withDurable = async <T>(bytes: Uint8Array, use: (path: string) => Promise<T>): Promise<T> => {
    const path = temporaryFile()
    const file = await newFile(path)
    try {
      try {
        await writeAll(file, bytes, 0)
        await file.sync()
      } finally {
        await file.close()
      }
      return await use(path)
    } finally {
      await removeIfThere(path)
    }
  }

  return {
    root,
    network,

    put: (key, bytes) =>
      trying(`write ${key}`, async () => {
        const path = objectPath(key)
        await folderAt(dirname(path))
        await withDurable(bytes, async (durable) => {
          try {
            await link(durable, path)
          } catch (error) {
            // a put whose answer was lost comes again with the same bytes
            if (codeOf(error) !== 'EEXIST' || !(await readFile(path)).equals(bytes)) throw error
          }
          await syncFolder(dirname(path))
        })
      }),

    create: (key) =>
      trying(`write ${key}`, async () => {
        const path = objectPath(key)
        await folderAt(dirname(path))
        return await objectWriter(temporaryFile(), path, `write ${key}`)
      }),

    read: (key, range) =>
      trying(`read ${key}`, async () => {
        const path = objectPath(key)
        if (!range) return await readWhole(path, Number.MAX_SAFE_INTEGER)
        const file = await openToRead(path)
        if (!file) return null
        try {
          const bytes = Buffer.allocUnsafeSlow(range.length)
          let got = 0
          while (got < range.length) {
            const { bytesRead } = await file.read(bytes, got, range.length - got, range.offset + got)
            if (bytesRead === 0) break
            got += bytesRead
          }
          return bytes.subarray(0, got)
        } finally {
          await file.close()
        }
      }),

    createSlot: (job, slot, bytes) =>
      trying(`take slot ${job}/${slot}`, async () => {
        const path = slotPath(job, slot)
        await folderAt(dirname(path))
        return await withDurable(bytes, async (durable) => {
          let won = true
          try {
            await link(durable, path)
          } catch (error) {
            if (codeOf(error) !== 'EEXIST') throw error
            won = false
          }
          // also where it was there already: the one who made it may have died before its name was durable
          await syncFolder(dirname(path))
          if (won) return 'won'
          const there = await readFile(path)
          return there.equals(bytes) ? 'mine' : 'taken'
        })
      }),

    readSlot: (job, slot) =>
      trying(`read slot ${job}/${slot}`, async () => await readWhole(slotPath(job, slot), maxSlotBytes)),

    replaceSlot: (job, slot, bytes) =>
      trying(`replace slot ${job}/${slot}`, async () => {
        const path = slotPath(job, slot)
        await stat(path)
        await withDurable(bytes, async (durable) => {
          await rename(durable, path)
          await syncFolder(dirname(path))
        })
      }),

    removeSlot: (job, slot) =>
      trying(`remove slot ${job}/${slot}`, async () => {
        const path = slotPath(job, slot)
        await removeIfThere(path)
        await removeFolderIfEmpty(dirname(path))
      }),

    slots: (job) =>
      trying(`list the slots of ${job}`, async () => {
        checkJob(job)
        const names = await namesIn(join(slotsFolder, job))
        return names
          .filter((name) => /^[0-9]{6}$/.test(name))
          .map(Number)
          .sort((a, b) => a - b)
      }),

    list: (prefix) =>
      trying(`list ${prefix}`, async () => {
        const parts = checkPrefix(prefix)
        const keys: string[] = []
        await walk(join(objects, ...parts), parts.join('/'), keys)
        return keys.sort()
      }),

    remove: (key) =>
      trying(`remove ${key}`, async () => {
        const path = objectPath(key)
        await removeIfThere(path)
        for (let up = dirname(path); up.length > objects.length; up = dirname(up))
          if (!(await removeFolderIfEmpty(up))) break
      }),
  }
}

const namesIn = async (path: string): Promise<readonly string[]> => {
  try {
    return await readdir(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

const walk = async (path: string, key: string, keys: string[]): Promise<void> => {
  let entries
  try {
    entries = await readdir(path, { withFileTypes: true })
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    throw error
  }
  for (const entry of entries) {
    if (entry.isDirectory()) await walk(join(path, entry.name), `${key}/${entry.name}`, keys)
    else if (entry.isFile()) keys.push(`${key}/${entry.name}`)
  }
}

const removeFolderIfEmpty = async (path: string): Promise<boolean> => {
  try {
    await rmdir(path)
    return true
  } catch (error) {
    if (['ENOTEMPTY', 'ENOENT', 'EEXIST'].includes(codeOf(error) ?? '')) return codeOf(error) === 'ENOENT'
    throw error
  }
}

/** What killed writers left: never part of anything, since it never got a name. */
const removeStale = async (temporary: string): Promise<void> => {
  for (const name of await readdir(temporary)) {
    const path = join(temporary, name)
    const found = await stat(path).catch(() => null)
    if (found && Date.now() - found.mtimeMs > staleAfter_ms) await removeIfThere(path)
  }
}
