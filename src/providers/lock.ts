import { DatabaseSync } from 'node:sqlite'

/**
 * A lock that the kernel takes back when its holder ends, however it ends. Node has no flock; SQLite's exclusive lock is
 * one, and unlike a flock it is not inherited by the processes that the holder starts.
 */
export interface Lock {
  release(): void
}

// an open database that nobody refers to would be collected, and its lock with it
const held = new Set<DatabaseSync>()

/** @returns null when somebody else holds it still after `waitMs` */
export function takeLock(path: string, waitMs = 0): Lock | null {
  const database = new DatabaseSync(path, { timeout: waitMs })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (isBusy(error)) return null
    throw error
  }
  held.add(database)
  return {
    release: () => {
      if (held.delete(database)) database.close()
    },
  }
}

const sqliteBusy = 5
const isBusy = (error: unknown): boolean => error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy
