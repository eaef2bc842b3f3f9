import { createHash } from 'node:crypto'
import { openSync, closeSync, readSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { chunkBytes } from '../chain/format.ts'
import { encodeHead, frameReader, type Frame } from './frames.ts'

/** A job's SDK as small as can be, for tests: says what it is told to say, and can misbehave. */
export interface FakeSdk {
  readonly socket: Socket
  say(meta: object, payload?: Uint8Array): void
  raw(bytes: Uint8Array): void
  /** the next frame; null: the connection is over */
  next(): Promise<(Frame['meta'] & { readonly bytes: Buffer }) | null>
  /** the next frame, which must be `t` */
  expect(t: string): Promise<Frame['meta'] & { readonly bytes: Buffer }>
  hello(more?: object): void
  /** answers the `save` that comes next with these streams */
  save(
    streams: Readonly<Record<string, Buffer>>,
    more?: { readonly digest?: string; readonly meta?: unknown },
  ): Promise<void>
  close(): void
}

export const fakeSdk = async (socketPath: string): Promise<FakeSdk> => {
  const socket = connect(socketPath)
  const waiting: (Frame['meta'] & { bytes: Buffer })[] = []
  const readers: ((frame: (Frame['meta'] & { bytes: Buffer }) | null) => void)[] = []
  let over = false
  const frames = frameReader(1, ({ meta, payload }) => {
    const frame = { ...meta, bytes: Buffer.from(payload) }
    const reader = readers.shift()
    if (reader) reader(frame)
    else waiting.push(frame)
  })
  frames.allowLarge(true)
  socket.on('data', (bytes: Buffer) => frames.push(bytes))
  socket.on('error', () => {})
  socket.on('close', () => {
    over = true
    for (const reader of readers) reader(null)
  })
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()))

  const say = (meta: object, payload?: Uint8Array) => {
    socket.write(encodeHead(meta, payload?.length ?? 0))
    if (payload) socket.write(payload)
  }
  const next: FakeSdk['next'] = () => {
    const frame = waiting.shift()
    if (frame || over) return Promise.resolve(frame ?? null)
    return new Promise((resolve) => readers.push(resolve))
  }
  const expectFrame: FakeSdk['expect'] = async (t) => {
    const frame = await next()
    if (frame?.t !== t) throw new Error(`expected ${t}, got ${frame ? JSON.stringify(frame).slice(0, 300) : 'the end'}`)
    return frame
  }
  return {
    socket,
    say,
    raw: (bytes) => void socket.write(bytes),
    next,
    expect: expectFrame,
    hello: (more = {}) =>
      say({
        t: 'hello',
        protocol: 1,
        sdk: 'python',
        version: '0.1',
        pid: process.pid,
        environment: { language: 'python' },
        ...more,
      }),
    save: async (streams, { digest = 'digest', meta = { opaque: true } } = {}) => {
      const { id } = await expectFrame('save')
      say({
        t: 'save',
        id,
        values: [{ path: 'state.x', kind: 'bytes', bytes: 1 }],
        environment: { language: 'python' },
        meta,
        streams: Object.entries(streams).map(([name, bytes]) => ({ name, bytes: bytes.length })),
      })
      for (const [stream, bytes] of Object.entries(streams)) sendChunks(say, Number(id), stream, bytes)
      say({ t: 'saved', id, digest })
    },
    close: () => void socket.destroy(),
  }
}

/** All chunks of a stream, 64 a frame, zeros left out. */
export const sendChunks = (say: FakeSdk['say'], id: number, stream: string, bytes: Buffer): void => {
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes))
  for (let first = 0; first < chunks.length; first += 64) {
    const part = chunks.slice(first, first + 64)
    const zero = part.map((chunk) => chunk.every((byte) => byte === 0))
    say(
      {
        t: 'chunks',
        id,
        stream,
        first,
        bytes: part.map(({ length }) => length),
        sha256: part.map((chunk, i) => (zero[i] ? null : createHash('sha256').update(chunk).digest('hex'))),
      },
      Buffer.concat(part.filter((_, i) => !zero[i])),
    )
  }
}

/** What the job would see at its safe point. */
export const isAsked = (flagPath: string): boolean => {
  const file = openSync(flagPath, 'r')
  const byte = Buffer.alloc(1)
  readSync(file, byte, 0, 1, 0)
  closeSync(file)
  return byte[0] === 1
}
