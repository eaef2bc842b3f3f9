import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { LockedError, type Holder } from './errors.ts'
import { preparePrivateFile } from './sqlite/file.ts'
import type { Instant } from '../core/time/index.ts'

/** One control plane at a time works on a data directory. The lock only saves work: what fences is compare-and-set. */
export interface Lock {
  release(): void
}

// a database that nobody refers to is closed when it is collected, and its lock is gone
const held = new Set<DatabaseSync>()

/**
 * Takes the lock of a data directory. It is SQLite's exclusive lock on a file that holds nothing, so the kernel gives it back
 * when its holder ends, however it ends; no process that the holder starts inherits it. Who holds it is written beside it,
 * for people: nothing is decided by that.
 *
 * @param where the lock's file in that directory; `WHERE.json` beside it names the holder
 * @throws LockedError naming the holder's pid and since when; StoreError `store_network_file_system`, `store_failed`
 */
export function takeLock(where: string, now: Instant): Lock {
  const file = preparePrivateFile(where)
  const database = new DatabaseSync(file)
  try {
    database.exec('begin exclusive')
  } catch (error) {
    database.close()
    if (!isBusy(error)) throw error
    const holder = holderOf(file)
    const who =
      holder === null ? 'another process' : `process ${holder.pid} since ${new Date(holder.since).toISOString()}`
    throw new LockedError(
      `${dirname(file)} is held by ${who}. Only one control plane works on a data directory: use that one, or end it first.`,
      holder,
    )
  }
  held.add(database)
  tell(file, { pid: process.pid, since: now })
  return {
    release: () => {
      if (held.delete(database)) database.close()
    },
  }
}

const noteOf = (file: string): string => `${file}.json`

function tell(file: string, holder: Holder): void {
  const draft = `${noteOf(file)}.${holder.pid}`
  writeFileSync(draft, JSON.stringify(holder), { mode: 0o600 })
  renameSync(draft, noteOf(file))
}

/** What is written may be of a holder before, killed; then the one of now is about to write. */
function holderOf(file: string): Holder | null {
  try {
    const { pid, since } = JSON.parse(readFileSync(noteOf(file), 'utf8')) as Holder
    return Number.isSafeInteger(pid) && Number.isSafeInteger(since) && isAlive(pid) ? { pid, since } : null
  } catch {
    return null
  }
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

const sqliteBusy = 5
const isBusy = (error: unknown): boolean => error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy
