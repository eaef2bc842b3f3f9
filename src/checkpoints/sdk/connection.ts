import type { Socket } from 'node:net'
import type { Duration } from '../../core/time/index.ts'
import { encodeHead, FrameError, frameReader, type Frame } from './frames.ts'

/** So many whole frames wait to be taken before the socket is no longer read. */
const mostWaiting = 2
/** The one in work, those that wait, and the one that is coming in. */
const payloads = mostWaiting + 2

/** The connection is over: closed by the job, or by us for what it sent or left out. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
}

/** One client: frames in both directions, one reader at a time. */
export interface Connection {
  /** Why it ended; null while it lives. */
  readonly ended: string | null
  /** Resolves with the reason when it ends. */
  readonly over: Promise<string>
  /** The next frame. Ends the connection if none comes within `wait`, and throws `ConnectionError` when it is over. */
  next(wait: Duration | null, large?: boolean): Promise<Frame>
  /** Sends a frame; resolves once its bytes are out of our hands. */
  send(meta: object, payload?: Uint8Array): Promise<void>
  end(why: string): void
}

export const connection = (socket: Socket): Connection => {
  const waiting: Frame[] = []
  let reader: { take: (frame: Frame) => void; fail: (error: Error) => void } | null = null
  let ended: string | null = null
  let resolveOver: (why: string) => void
  const over = new Promise<string>((resolve) => {
    resolveOver = resolve
  })

  const end = (why: string): void => {
    if (ended !== null) return
    ended = why
    socket.destroy()
    reader?.fail(new ConnectionError(why))
    reader = null
    resolveOver(why)
  }
  const frames = frameReader(payloads, (frame) => {
    if (reader) {
      const { take } = reader
      reader = null
      take(frame)
    } else waiting.push(frame)
    if (waiting.length >= mostWaiting) socket.pause()
  })
  socket.on('data', (bytes: Buffer) => {
    try {
      if (ended === null) frames.push(bytes)
    } catch (error) {
      end(error instanceof FrameError ? error.message : String(error))
    }
  })
  socket.on('error', (error) => end(`the connection broke: ${error.message}`))
  socket.on('close', () => end('the job closed the connection'))
  socket.on('end', () => end('the job closed the connection'))

  return {
    get ended() {
      return ended
    },
    over,
    end,
    next: (wait, large = false) => {
      frames.allowLarge(large)
      const frame = waiting.shift()
      if (frame) {
        if (waiting.length < mostWaiting) socket.resume()
        return Promise.resolve(frame)
      }
      if (ended !== null) return Promise.reject(new ConnectionError(ended))
      if (reader) return Promise.reject(new Error('two readers of one connection'))
      return new Promise((resolve, reject) => {
        const waits = {
          take: (frame: Frame) => {
            if (timer) clearTimeout(timer)
            resolve(frame)
          },
          fail: (error: Error) => {
            if (timer) clearTimeout(timer)
            reject(error)
          },
        }
        // where we ourselves stood still, the answer may lie in the socket already: it is read before the silence counts
        const silent = () =>
          setImmediate(() => {
            if (reader === waits && wait !== null)
              end(`the job said nothing for ${wait / 1000} s where an answer was due`)
          })
        const timer = wait === null ? null : setTimeout(silent, wait)
        reader = waits
      })
    },
    send: async (meta, payload) => {
      if (ended !== null) throw new ConnectionError(ended)
      const head = encodeHead(meta, payload?.length ?? 0)
      // the bytes may be used again by who gave them, so they must have left before this returns
      const left = new Promise<void>((resolve) => {
        socket.cork()
        if (payload && payload.length > 0) {
          socket.write(head)
          socket.write(payload, () => resolve())
        } else socket.write(head, () => resolve())
        socket.uncork()
      })
      await Promise.race([left, over])
      if (ended !== null) throw new ConnectionError(ended)
    },
  }
}
