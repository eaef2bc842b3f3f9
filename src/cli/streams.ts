import { once } from 'node:events'
import { fstatSync, statSync, writeSync } from 'node:fs'

/** Where output goes; of a terminal also how wide it is. */
export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/**
 * stdout or stderr for short texts, without Node's stream where it is not needed: making one costs 2 ms, as much as all
 * else that a small command does. A terminal gets the stream, and so does a reader that is slow.
 *
 * @param open gives the stream
 */
export const leanOutput = (fd: 1 | 2, open: () => NodeJS.WriteStream): Output => {
  let stream = isTerminal(fd) ? open() : null
  return {
    write(text) {
      if (stream) return stream.write(text)
      const bytes = Buffer.from(text)
      for (let done = 0; done < bytes.length;) {
        try {
          done += writeSync(fd, bytes, done)
        } catch (error) {
          const { code } = error as NodeJS.ErrnoException
          // whoever read is gone (`portal ps | head`): no error, and nothing more to say
          if (code === 'EPIPE') process.exit(0)
          if (code !== 'EAGAIN') throw error
          stream = open()
          return stream.write(bytes.subarray(done))
        }
      }
      return true
    },
    get isTTY() {
      return stream?.isTTY === true
    },
    get columns() {
      return stream?.columns ?? 80
    },
  }
}

/** A terminal is a character device; the commonest one that is none is known by its number, others by the stream. */
const isTerminal = (fd: number): boolean => {
  try {
    const stat = fstatSync(fd)
    return stat.isCharacterDevice() && stat.rdev !== statSync('/dev/null').rdev
  } catch {
    return false
  }
}

const watched = new Set<NodeJS.WriteStream>()

/** Passes bytes on as they are; resolves when the reader has room for more. */
export const pass = async (stream: NodeJS.WriteStream, bytes: Uint8Array): Promise<void> => {
  if (!watched.has(stream)) {
    watched.add(stream)
    stream.on('error', ({ code }: NodeJS.ErrnoException) => process.exit(code === 'EPIPE' ? 0 : 1))
  }
  if (!stream.write(bytes)) await once(stream, 'drain')
}
