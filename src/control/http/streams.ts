/** Answers that take their time: events as they happen, bytes as they are read. Both wait for the reader. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { PortalError, portalError } from '../../contract/errors.ts'

export interface SentEvent {
  readonly id: string | null
  readonly event: string
  readonly data: unknown
}

export interface StreamTimes {
  /** a comment is sent after this long without an event, so that both ends notice a dead connection */
  readonly heartbeatMs: number
  /** a reader that takes nothing for this long is cut off: it comes back by Last-Event-ID */
  readonly stallMs: number
}

/** All streams of a server: how many there are, and their common end. */
export interface Streams {
  /** Writes events until they end, the reader leaves, or the server closes. Throws `too_many_streams` before anything is sent. */
  events(outgoing: ServerResponse, make: (signal: AbortSignal) => AsyncIterable<SentEvent>): Promise<void>
  /** Writes bytes the same way; what fails after the head was sent cuts the connection, so that nobody takes half for all. */
  bytes(outgoing: ServerResponse, head: ByteHead, pieces: AsyncIterable<Uint8Array>): Promise<void>
  readonly open: number
  /** Ends all streams of events, and lets no more begin. */
  close(): void
}

interface ByteHead {
  readonly type: string
  readonly bytes: number | null
}

export function createStreams(limit: number, times: StreamTimes): Streams {
  const open = new Set<AbortController>()
  let closed = false

  return {
    get open() {
      return open.size
    },

    async events(outgoing, make) {
      if (closed) throw portalError('shutting_down', {})
      if (open.size >= limit) throw portalError('too_many_streams', { limit })
      const controller = new AbortController()
      const { signal } = controller
      open.add(controller)
      const leave = () => {
        open.delete(controller)
        controller.abort()
      }
      outgoing.once('close', leave)
      signal.addEventListener('abort', () => outgoing.end(), { once: true })

      outgoing.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        // a proxy that gathers events would delay them
        'x-accel-buffering': 'no',
      })
      outgoing.socket?.setNoDelay(true)
      let lastWrite = performance.now()
      const heartbeat = setInterval(() => {
        if (outgoing.writableNeedDrain || performance.now() - lastWrite < times.heartbeatMs) return
        lastWrite = performance.now()
        outgoing.write(':\n\n')
      }, times.heartbeatMs)
      try {
        // the head goes out at once: whoever follows knows that it is being followed
        outgoing.write(':\n\n')
        for await (const event of make(signal)) {
          if (signal.aborted) break
          lastWrite = performance.now()
          if (!outgoing.write(encode(event))) await drained(outgoing, times.stallMs)
          if (signal.aborted) break
        }
        outgoing.end()
      } catch (error) {
        if (signal.aborted) return
        // the head is out: the reader sees a cut, and asks again with the id that it has
        outgoing.destroy()
        throw error
      } finally {
        clearInterval(heartbeat)
        leave()
      }
    },

    async bytes(outgoing, { type, bytes }, pieces) {
      const source = pieces[Symbol.asyncIterator]()
      // the first piece before the head: what fails at once is answered as an error
      let step = await source.next()
      outgoing.writeHead(200, {
        'content-type': type,
        'cache-control': 'no-store',
        ...(bytes === null ? {} : { 'content-length': bytes }),
      })
      try {
        while (!step.done && !outgoing.destroyed) {
          if (!outgoing.write(step.value)) await drained(outgoing, times.stallMs)
          step = await source.next()
        }
        outgoing.end()
      } catch (error) {
        const gone = outgoing.destroyed
        outgoing.destroy()
        if (!gone) throw error
      } finally {
        await source.return?.()
      }
    },

    close() {
      closed = true
      for (const controller of open) controller.abort()
    },
  }
}

/** Waits until the reader took what was written; cuts it off when it takes nothing for too long. */
async function drained(outgoing: ServerResponse, stallMs: number): Promise<void> {
  if (outgoing.destroyed) return
  const stalled = new AbortController()
  const timer = setTimeout(() => outgoing.destroy(), stallMs)
  const stop = () => stalled.abort()
  outgoing.once('close', stop)
  try {
    await once(outgoing, 'drain', { signal: stalled.signal })
  } catch (error) {
    if (error instanceof PortalError || !stalled.signal.aborted) throw error
  } finally {
    clearTimeout(timer)
    outgoing.off('close', stop)
  }
}

function encode({ id, event, data }: SentEvent): string {
  // JSON has no line breaks of its own, so one data line is enough
  return `${id === null ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
