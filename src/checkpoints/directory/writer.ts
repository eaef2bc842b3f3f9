import { link } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StoreError } from '../errors.ts'
import type { ObjectWriter } from '../port.ts'
import { newFile, removeIfThere, syncFolder, trying, writeAll } from './files.ts'

/** So much is handed to the disk at a time, in the background, that the last flush of a large pack is short. */
const flushEvery_bytes = 16 << 20
/** A file that grows under a temporary name and gets its own when it is durable; `doing` stands in its errors. */
export const objectWriter = async (temporary: string, path: string, doing: string): Promise<ObjectWriter> => {
  const file = await newFile(temporary)
  let length = 0
  let flushed = 0
  let flushing: Promise<void> | null = null
  let failed: unknown = null
  let open = true
  const giveUp = async () => {
    if (!open) return
    open = false
    await flushing
    await file.close()
    await removeIfThere(temporary)
  }
  const orGiveUp = <T>(act: () => Promise<T>): Promise<T> =>
    trying(doing, async () => {
      try {
        if (!open) throw new StoreError('io', 'the object was closed or given up already')
        if (failed) throw failed
        return await act()
      } catch (error) {
        await giveUp().catch(() => {})
        throw error
      }
    })
  const flushBehind = () => {
    if (flushing || length - flushed < flushEvery_bytes) return
    flushed = length
    flushing = file
      .datasync()
      .catch((error: unknown) => {
        failed = error
      })
      .finally(() => {
        flushing = null
      })
  }
  return {
    write: (bytes) =>
      orGiveUp(async () => {
        const at = length
        length += bytes.length
        await writeAll(file, bytes, at)
        flushBehind()
      }),
    close: () =>
      orGiveUp(async () => {
        await flushing
        // a flush that failed is not tried again: the system may have dropped the pages and would then report success
        if (failed) throw failed
        await file.sync()
        await link(temporary, path)
        await syncFolder(dirname(path))
        await giveUp()
      }),
    abort: () => trying(doing, giveUp),
  }
}
