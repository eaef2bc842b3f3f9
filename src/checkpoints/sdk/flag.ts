import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'

const flagBytes = 64

/** The shared file of one attempt: the job looks at its first byte at every safe point, and writes its counters. */
export interface Flag {
  set(asked: boolean): void
  read(): { readonly turns: number; readonly done: number | null; readonly total: number | null }
  close(): void
}

/**
 * Opens it, or makes it. One that is there is kept as it is: a job that outlived its agent has it in memory, and would
 * never look at another.
 */
export const openFlag = (path: string): Flag => {
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  if (fstatSync(file).size < flagBytes) {
    ftruncateSync(file, flagBytes)
    const said = Buffer.alloc(16)
    said.writeDoubleLE(Number.NaN, 0)
    said.writeDoubleLE(Number.NaN, 8)
    writeSync(file, said, 0, 16, 16)
  }
  const bytes = Buffer.alloc(flagBytes)
  return {
    set: (asked) => {
      writeSync(file, Buffer.from([asked ? 1 : 0]), 0, 1, 0)
    },
    read: () => {
      readSync(file, bytes, 0, flagBytes, 0)
      const turns = bytes.readUInt32LE(8) + bytes.readUInt32LE(12) * 2 ** 32
      return {
        turns: Math.min(turns, Number.MAX_SAFE_INTEGER),
        done: finite(bytes.readDoubleLE(16)),
        total: finite(bytes.readDoubleLE(24)),
      }
    },
    close: () => closeSync(file),
  }
}

const finite = (number: number): number | null => (Number.isFinite(number) ? number : null)
