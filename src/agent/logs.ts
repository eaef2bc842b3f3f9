import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { logPieceBytes } from '../contract/agent-schema.ts'
import { second, type Duration } from '../core/time/index.ts'

/** So much is sent ahead of what was acknowledged. */
const window = 2 * 1024 * 1024
/** Silence this long after a piece was sent: it is sent again. */
const patience: Duration = 5 * second

export interface LogPiece {
  readonly offset: number
  readonly data: string
}

/** The part of a log that nobody has confirmed to hold, up to where it was written. */
export interface Unheard {
  readonly path: string
  readonly from: number
  readonly until: number
}

/**
 * Ships one file by offset. The control plane says how much it has; what it has is not sent again after that, what it has
 * not is, so nothing is lost or doubled whoever was killed. Until the first answer of a connection only one piece is sent.
 */
export class LogShipper {
  readonly #path: string
  #sent = 0
  #acked = 0
  #known = false
  #sentAt: Duration = 0

  constructor(path: string) {
    this.#path = path
  }

  /** How much was written so far, and when last; null: nothing yet. */
  size(): { readonly bytes: number; readonly at: number | null } {
    try {
      const { size, mtimeMs } = statSync(this.#path)
      return { bytes: size, at: size > 0 ? Math.round(mtimeMs) : null }
    } catch {
      return { bytes: 0, at: null }
    }
  }

  get acked(): number {
    return this.#acked
  }

  unheard(): Unheard {
    return { path: this.#path, from: this.#acked, until: this.size().bytes }
  }

  /** A new connection: what the other side has is not known. */
  connected(): void {
    this.#known = false
    this.#sent = this.#acked
  }

  acknowledged(upTo: number): void {
    // the first answer of a connection is the truth, also where it is less than before
    if (!this.#known || upTo > this.#acked) this.#acked = upTo
    if (!this.#known || upTo > this.#sent) this.#sent = upTo
    this.#known = true
  }

  /** The next piece to send, if there is one to be sent now. `now` is monotonic. */
  next(now: Duration): LogPiece | null {
    if (this.#sent > this.#acked && now - this.#sentAt > patience) this.#sent = this.#acked
    const ahead = this.#sent - this.#acked
    if (ahead >= window || (!this.#known && ahead > 0)) return null
    let file: number
    try {
      file = openSync(this.#path, 'r')
    } catch {
      return null
    }
    try {
      const length = Math.min(fstatSync(file).size - this.#sent, logPieceBytes)
      if (length <= 0) return null
      const bytes = Buffer.allocUnsafe(length)
      const read = readSync(file, bytes, 0, length, this.#sent)
      const offset = this.#sent
      this.#sent += read
      this.#sentAt = now
      return read > 0 ? { offset, data: bytes.subarray(0, read).toString('base64') } : null
    } finally {
      closeSync(file)
    }
  }
}
