/** An agent's side of `src/checkpoints/sdk/PROTOCOL.md`, to the letter, for tests: it refuses whatever the protocol does not allow. */
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Value {
  readonly path: string
  readonly type: string
  readonly reason: string
  readonly advice: string
}
export interface Saved {
  readonly values: readonly { readonly path: string; readonly kind: string; readonly bytes: number }[]
  readonly environment: Readonly<Record<string, unknown>>
  readonly meta: Readonly<Record<string, unknown>>
  readonly streams: readonly { readonly name: string; readonly data: Buffer }[]
  readonly digest: string
}
/** A message's meta; the fields that tests look at. */
export interface Meta {
  readonly t: string
  readonly id?: number
  readonly turn?: number
  readonly digest?: string
  readonly why?: string
  readonly asks?: string | null
  readonly again?: boolean
  readonly waiting?: boolean
  readonly bytes?: number | readonly number[]
  readonly objects?: number
  readonly values?: readonly Value[]
  readonly stream?: string
  readonly first?: number
  readonly sha256?: readonly (string | null)[]
}
interface SaveMeta {
  readonly values: Saved['values']
  readonly environment: Saved['environment']
  readonly meta: Saved['meta']
  readonly streams: readonly { readonly name: string; readonly bytes: number }[]
}
interface Frame {
  readonly meta: Meta
  readonly payload: Buffer
}

export const sdkUrl = new URL('../../../sdk/node/index.js', import.meta.url).href
export const registerUrl = new URL('../../../sdk/node/register.mjs', import.meta.url).href
const chunkBytes = 65_536
const mebi = 1 << 20

/** Frames out of a socket, one at a time. */
const frames = async function* (socket: Socket): AsyncGenerator<Frame> {
  let held = Buffer.alloc(0)
  for await (const bytes of socket) {
    held = held.length === 0 ? bytes : Buffer.concat([held, bytes])
    while (held.length >= 8) {
      const metaLength = held.readUInt32LE(0)
      const payloadLength = held.readUInt32LE(4)
      if (payloadLength > 8 * mebi) throw new Error(`a payload of ${payloadLength}`)
      if (held.length < 8 + metaLength + payloadLength) break
      const meta = JSON.parse(held.subarray(8, 8 + metaLength).toString()) as Meta
      if (metaLength > mebi && meta.t !== 'save') throw new Error(`a meta of ${metaLength} in ${meta.t}`)
      yield { meta, payload: Buffer.from(held.subarray(8 + metaLength, 8 + metaLength + payloadLength)) }
      held = held.subarray(8 + metaLength + payloadLength)
    }
  }
}

const encode = (meta: object, payload: Uint8Array = new Uint8Array()): Buffer => {
  const text = Buffer.from(JSON.stringify(meta))
  const head = Buffer.alloc(8)
  head.writeUInt32LE(text.length, 0)
  head.writeUInt32LE(payload.length, 4)
  return Buffer.concat([head, text, payload])
}

/** One attempt of a job, with its agent. */
export class Attempt {
  readonly folder: string
  readonly #folders: string[]
  readonly process: ChildProcess
  output = ''
  errors = ''
  #server: Server
  #socket: Socket | null = null
  #waiting: ((frame: Frame) => void)[] = []
  #frames: Frame[] = []
  #ids = 0
  readonly ended: Promise<number | null>

  private constructor(folder: string, server: Server, child: ChildProcess) {
    this.folder = folder
    this.#folders = [folder]
    this.#server = server
    this.process = child
    child.stdout?.on('data', (bytes: Buffer) => (this.output += bytes.toString()))
    child.stderr?.on('data', (bytes: Buffer) => (this.errors += bytes.toString()))
    this.ended = once(child, 'close').then(([code]) => code as number | null)
    server.on('connection', (socket) => this.#take(socket))
  }

  /** The same with a script given as text, in which `job` is there already. */
  static async startSource(source: string, options: Parameters<typeof Attempt.start>[1] = {}): Promise<Attempt> {
    const folder = await mkdtemp(join(tmpdir(), 'portal-sdk-'))
    const script = join(folder, 'job.mjs')
    await writeFile(script, `import { job } from ${JSON.stringify(sdkUrl)}\n${source}`)
    const attempt = await Attempt.start(script, options)
    attempt.#folders.push(folder)
    return attempt
  }

  /** @param options.node the interpreter to run; the one that runs the tests by default */
  static async start(
    script: string,
    options: { node?: string; args?: string[]; env?: Record<string, string>; listen?: boolean } = {},
  ): Promise<Attempt> {
    const folder = await mkdtemp(join(tmpdir(), 'portal-sdk-'))
    const flag = join(folder, 'flag')
    await writeFile(flag, Buffer.alloc(64), { mode: 0o600 })
    const server = createServer()
    if (options.listen !== false) await once(server.listen(join(folder, 'socket')), 'listening')
    const child = spawn(options.node ?? process.execPath, [...(options.args ?? []), script], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        ...options.env,
        PORTAL_SOCKET: join(folder, 'socket'),
        PORTAL_FLAG: flag,
        PORTAL_JOB: 'test',
        PORTAL_ATTEMPT: '3',
      },
    })
    return new Attempt(folder, server, child)
  }

  async listen(): Promise<void> {
    await once(this.#server.listen(join(this.folder, 'socket')), 'listening')
  }

  /** Goes away, as an agent that is killed. */
  async vanish(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#socket?.destroy()
    this.#socket = null
    this.#frames = []
    await closed
  }

  #take(socket: Socket): void {
    this.#socket?.destroy()
    this.#socket = socket
    socket.on('error', () => {})
    void (async () => {
      try {
        for await (const frame of frames(socket)) {
          if (this.#socket !== socket) return
          const waiting = this.#waiting.shift()
          if (waiting) waiting(frame)
          else this.#frames.push(frame)
        }
      } catch {
        // a connection that breaks is what some tests want
      }
    })()
  }

  async frame(t: string): Promise<Frame> {
    const frame = this.#frames.shift() ?? (await this.#nextFrame())
    if (frame.meta.t !== t) throw new Error(`${t} was due, and ${JSON.stringify(frame.meta).slice(0, 2000)} came`)
    return frame
  }

  #nextFrame(): Promise<Frame> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(resolve)
      void this.ended.then((code) => reject(new Error(`the job ended with ${code}:\n${this.output}\n${this.errors}`)))
    })
  }

  send(meta: object, payload?: Uint8Array): void {
    this.#socket?.write(encode(meta, payload))
  }

  sendRaw(bytes: Uint8Array): void {
    this.#socket?.write(bytes)
  }

  /** Takes the hello and answers it; restores what is given. Gives the hello. */
  async welcome(saved: Saved | null, bitExact = false): Promise<Meta> {
    const { meta } = await this.frame('hello')
    if (saved === null) {
      this.send({ t: 'welcome', restore: null, bitExact })
      return meta
    }
    this.sendRestore(saved, bitExact)
    this.send({ t: 'verified' })
    return meta
  }

  sendRestore(saved: Saved, bitExact = false): void {
    const streams = saved.streams.map(({ name, data }) => ({ name, bytes: data.length }))
    const { digest, environment, values, meta } = saved
    this.send({ t: 'welcome', bitExact, restore: { slot: 1, digest, environment, values, streams, meta } })
    for (const { name, data } of saved.streams)
      for (let offset = 0; offset < data.length; offset += 3 * mebi)
        this.send({ t: 'data', stream: name, offset }, data.subarray(offset, offset + 3 * mebi))
  }

  /** Restores, and checks the digest that the SDK answers. */
  async restore(saved: Saved, bitExact = false): Promise<void> {
    await this.welcome(saved, bitExact)
    const { meta } = await this.frame('restored')
    if (meta.digest !== saved.digest) throw new Error(`restored ${meta.digest}, saved ${saved.digest}`)
  }

  run(): void {
    this.send({ t: 'run' })
  }

  async setFlag(value: 0 | 1): Promise<void> {
    const file = await open(join(this.folder, 'flag'), 'r+')
    await file.write(Uint8Array.of(value), 0, 1, 0)
    await file.close()
  }

  async counters(): Promise<{ turns: number; done: number; total: number }> {
    const file = await open(join(this.folder, 'flag'), 'r')
    const { buffer } = await file.read(Buffer.alloc(64), 0, 64, 0)
    await file.close()
    return { turns: Number(buffer.readBigUInt64LE(8)), done: buffer.readDoubleLE(16), total: buffer.readDoubleLE(24) }
  }

  /** Asks, and waits until the job stands at a safe point. */
  async safePoint(): Promise<Meta> {
    await this.setFlag(1)
    return (await this.frame('safe-point')).meta
  }

  async go(): Promise<void> {
    await this.setFlag(0)
    this.send({ t: 'go' })
  }

  async probe(): Promise<Meta> {
    const id = ++this.#ids
    this.send({ t: 'probe', id })
    const { meta } = this.#frames.length > 0 ? (this.#frames.shift() as Frame) : await this.#nextFrame()
    if (meta.id !== id) throw new Error('an answer to another probe')
    return meta
  }

  /** Saves, checking order, lengths and every hash. */
  async save(): Promise<Saved | { readonly refused: readonly Value[] }> {
    const id = ++this.#ids
    this.send({ t: 'save', id })
    const { meta } = this.#frames.shift() ?? (await this.#nextFrame())
    if (meta.t === 'refused') return { refused: meta.values ?? [] }
    if (meta.t !== 'save' || meta.id !== id) throw new Error(`save was due, ${meta.t} came`)
    const { values, environment, meta: own, streams: announced } = meta as unknown as SaveMeta
    const streams: { name: string; data: Buffer }[] = []
    for (const { name, bytes } of announced) {
      const data = Buffer.alloc(bytes)
      let chunk = 0
      while (chunk * chunkBytes < bytes) {
        const { meta: part, payload } = this.#frames.shift() ?? (await this.#nextFrame())
        if (part.t === 'refused') return { refused: part.values ?? [] }
        if (part.t !== 'chunks') throw new Error(`chunks were due, ${part.t} came`)
        if (part.stream !== name || part.first !== chunk || part.id !== id) throw new Error('chunks out of order')
        const lengths = part.bytes as readonly number[]
        const hashes = part.sha256 ?? []
        if (lengths.length > 64 || lengths.length !== hashes.length) throw new Error('too many chunks')
        let at = 0
        for (const [index, length] of lengths.entries()) {
          const offset = chunk * chunkBytes
          if (length !== Math.min(chunkBytes, bytes - offset)) throw new Error('a chunk of a wrong length')
          const hash = hashes[index]
          if (typeof hash === 'string') {
            const got = payload.subarray(at, at + length)
            if (createHash('sha256').update(got).digest('hex') !== hash) throw new Error('a wrong hash')
            got.copy(data, offset)
            at += length
          }
          chunk++
        }
        if (at !== payload.length) throw new Error('a payload of a wrong length')
      }
      streams.push({ name, data })
    }
    const { meta: last } = await this.frame('saved')
    if (last.id !== id) throw new Error('saved of another save')
    this.send({ t: 'committed', id, slot: 1 })
    return { values, environment, meta: own, streams, digest: last.digest ?? '' }
  }

  /** Breaks the connection in the middle of a save. */
  async breakSave(): Promise<void> {
    this.send({ t: 'save', id: ++this.#ids })
    await this.frame('save')
    await this.frame('chunks')
    this.#socket?.destroy()
    this.#socket = null
    this.#frames = []
  }

  async saved(): Promise<Saved> {
    const saved = await this.save()
    if ('refused' in saved) throw new Error(`refused: ${JSON.stringify(saved.refused)}`)
    return saved
  }

  async kill(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill('SIGKILL')
    await this.ended
  }

  /** Ends the job and leaves nothing behind. */
  async close(): Promise<void> {
    await this.kill()
    this.#socket?.destroy()
    this.#server.close()
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true })
  }
}
