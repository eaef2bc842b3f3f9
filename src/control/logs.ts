import { EventEmitter, once } from 'node:events'
import { closeSync, constants, fstatSync, ftruncateSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** `JOBID.TOKEN` taken apart. */
export const jobIdOf = (attemptId: string): string => attemptId.slice(0, attemptId.lastIndexOf('.'))
export const tokenOf = (attemptId: string): number => Number(attemptId.slice(attemptId.lastIndexOf('.') + 1))

interface OpenLog {
  readonly fd: number
  size: number
  limit: number | null
}

/**
 * The logs of attempts, a file each. A file's length is what was acknowledged: repeats are nothing, and a gap is answered
 * with what is there, so that the agent sends again from there.
 */
export class Logs {
  readonly #folder: string
  readonly #open = new Map<string, OpenLog>()
  readonly #grew = new EventEmitter()

  constructor(folder: string) {
    this.#folder = folder
    this.#grew.setMaxListeners(0)
  }

  /** @returns up to which offset the log is held now */
  append(attemptId: string, offset: number, bytes: Uint8Array): number {
    const log = this.#log(attemptId)
    const end = Math.min(offset + bytes.length, log.limit ?? Infinity)
    if (offset <= log.size && end > log.size) {
      const fresh = bytes.subarray(log.size - offset, end - offset)
      for (let done = 0; done < fresh.length;)
        done += writeSync(log.fd, fresh, done, fresh.length - done, log.size + done)
      log.size = end
      this.#grew.emit(jobIdOf(attemptId))
    }
    // behind its limit nothing is kept, and nothing has to be sent again
    return log.limit !== null && log.size >= log.limit ? Math.max(log.size, offset + bytes.length) : log.size
  }

  size(attemptId: string): number {
    return this.#log(attemptId).size
  }

  /** From here on nothing behind `limit` belongs to the log: what an attempt wrote after it was held is not the job's. */
  cut(attemptId: string, limit: number): void {
    const log = this.#log(attemptId)
    log.limit = limit
    if (log.size > limit) {
      ftruncateSync(log.fd, limit)
      log.size = limit
    }
  }

  /** At most `most` bytes from `offset` on; empty at the end. */
  read(attemptId: string, offset: number, most: number): Uint8Array {
    const log = this.#log(attemptId)
    const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(most, log.size - offset)))
    const read = bytes.length === 0 ? 0 : readSync(log.fd, bytes, 0, bytes.length, offset)
    return bytes.subarray(0, read)
  }

  /** Resolves when a job's log grew, or something else about the job may be looked at (`nudge`). */
  async grown(jobId: string, signal: AbortSignal): Promise<void> {
    await once(this.#grew, jobId, { signal }).catch(() => {})
  }

  nudge(jobId: string): void {
    this.#grew.emit(jobId)
  }

  /** Closes the files of a job that has ended; they open again when read. */
  release(attemptId: string): void {
    const log = this.#open.get(attemptId)
    if (!log) return
    closeSync(log.fd)
    this.#open.delete(attemptId)
  }

  close(): void {
    for (const { fd } of this.#open.values()) closeSync(fd)
    this.#open.clear()
  }

  #log(attemptId: string): OpenLog {
    const known = this.#open.get(attemptId)
    if (known) return known
    const path = join(this.#folder, jobIdOf(attemptId), 'log', String(tokenOf(attemptId)))
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
    const log: OpenLog = { fd, size: fstatSync(fd).size, limit: null }
    this.#open.set(attemptId, log)
    return log
  }
}
