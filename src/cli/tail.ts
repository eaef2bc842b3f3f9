/** Passes bytes on, or with a limit keeps only those of the last lines until it is flushed. Holds at most `keep_bytes`. */
export class Tail {
  readonly #lines: number | null
  readonly #sink: (piece: Buffer) => Promise<void>
  #kept: Buffer[] = []
  #size = 0

  constructor(lines: number | null, sink: (piece: Buffer) => Promise<void>) {
    this.#lines = lines
    this.#sink = sink
  }

  async add(piece: Buffer): Promise<void> {
    if (this.#lines === null) return this.#sink(piece)
    this.#kept.push(piece)
    this.#size += piece.length
    // cut now and then, so that neither memory nor time grows with a long log
    if (this.#size > cutAt_bytes) this.#cut()
  }

  async flush(): Promise<void> {
    if (this.#lines === null) return
    this.#cut()
    for (const piece of this.#kept) if (piece.length > 0) await this.#sink(piece)
    this.#kept = []
  }

  #cut(): void {
    const all = Buffer.concat(this.#kept)
    const last = lastLines(all, this.#lines ?? 0)
    const kept = last.length > keep_bytes ? last.subarray(last.length - keep_bytes) : last
    this.#kept = [Buffer.from(kept)]
    this.#size = kept.length
  }
}

const cutAt_bytes = 16 * 1024 * 1024
const keep_bytes = 8 * 1024 * 1024

/** The last lines of some bytes; a line that has no end yet counts as one. */
export const lastLines = (bytes: Buffer, lines: number): Buffer => {
  if (lines === 0) return bytes.subarray(bytes.length)
  let at = bytes.length
  if (at > 0 && bytes[at - 1] === 10) at--
  for (let found = 0; at > 0; found++) {
    const newline = bytes.lastIndexOf(10, at - 1)
    if (newline < 0) return bytes
    if (found === lines - 1) return bytes.subarray(newline + 1)
    at = newline
  }
  return bytes
}
