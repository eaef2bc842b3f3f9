/** Bounds of a frame (PROTOCOL.md). A length beyond them ends the connection: neither side trusts the other's. */
export const maxMetaBytes = 1 << 20
/** for `save` and `welcome`, which carry the list of values and the SDK's own meta */
export const maxLargeMetaBytes = 64 << 20
export const maxPayloadBytes = 8 << 20
const headBytes = 8

/**
 * Larger payloads than a socket gives at once come into the ring; of those only so many can be whole before the socket
 * is paused. Small ones, of which many can come at once, have memory of their own.
 */
const ringFrom_bytes = 64 << 10

export interface Frame {
  readonly meta: { readonly t: string } & Readonly<Record<string, unknown>>
  /** valid until the next frame is taken: its memory is used again */
  readonly payload: Buffer
}

export class FrameError extends Error {
  override readonly name = 'FrameError'
}

export const encodeHead = (meta: object, payloadLength: number): Buffer => {
  const text = JSON.stringify(meta)
  const length = Buffer.byteLength(text)
  if (length > maxLargeMetaBytes) throw new FrameError(`a frame's meta of ${length} bytes is more than can be sent`)
  const head = Buffer.allocUnsafe(headBytes + length)
  head.writeUInt32LE(length, 0)
  head.writeUInt32LE(payloadLength, 4)
  head.write(text, headBytes)
  return head
}

/**
 * Takes bytes as they come and gives frames. Memory of payloads comes from a ring of `payloads` buffers and is used
 * again in turn, since a fresh one for each frame costs more than the copy into it. Throws `FrameError`; after that
 * nothing more can be read.
 */
export const frameReader = (payloads: number, take: (frame: Frame) => void) => {
  const ring: Buffer[] = Array.from({ length: payloads }, () => Buffer.alloc(0))
  const head = Buffer.alloc(headBytes)
  let turn = 0
  let part: 'head' | 'meta' | 'payload' = 'head'
  let into: Buffer = head
  let filled = 0
  let meta: Buffer = Buffer.alloc(0)
  let payload: Buffer = Buffer.alloc(0)
  let metaLimit = maxMetaBytes

  const begin = (next: 'head' | 'meta' | 'payload', buffer: Buffer): void => {
    part = next
    into = buffer
    filled = 0
  }
  const onHead = (): void => {
    const metaLength = head.readUInt32LE(0)
    const payloadLength = head.readUInt32LE(4)
    if (metaLength > metaLimit || metaLength < 2)
      throw new FrameError(`a frame says that its meta has ${metaLength} bytes; 2 to ${metaLimit} are allowed here`)
    if (payloadLength > maxPayloadBytes)
      throw new FrameError(
        `a frame says that its payload has ${payloadLength} bytes; up to ${maxPayloadBytes} are allowed`,
      )
    payload = payloadLength > ringFrom_bytes ? ringBuffer(payloadLength) : Buffer.allocUnsafe(payloadLength)
    begin('meta', Buffer.allocUnsafe(metaLength))
  }
  const ringBuffer = (length: number): Buffer => {
    turn = (turn + 1) % payloads
    let buffer = ring[turn] as Buffer
    if (buffer.length < length) buffer = ring[turn] = Buffer.allocUnsafeSlow(length)
    return buffer.subarray(0, length)
  }
  const onFull = (): void => {
    if (part === 'head') return onHead()
    if (part === 'meta') {
      meta = into
      if (payload.length > 0) return begin('payload', payload)
    }
    const frame = { meta: parseMeta(meta), payload }
    begin('head', head)
    take(frame)
  }

  return {
    push: (bytes: Buffer): void => {
      let at = 0
      while (at < bytes.length) {
        const copied = bytes.copy(into, filled, at)
        filled += copied
        at += copied
        if (filled === into.length) onFull()
      }
    },
    /** Whether a large meta is due: only the answer to a save may have one. */
    allowLarge: (large: boolean): void => {
      metaLimit = large ? maxLargeMetaBytes : maxMetaBytes
    },
  }
}

const parseMeta = (bytes: Buffer): Frame['meta'] => {
  let meta: unknown
  try {
    meta = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new FrameError('a frame has a meta that is not JSON')
  }
  if (typeof meta !== 'object' || meta === null || typeof (meta as { t?: unknown }).t !== 'string')
    throw new FrameError('a frame has a meta that is not an object with a name `t`')
  return meta as Frame['meta']
}
