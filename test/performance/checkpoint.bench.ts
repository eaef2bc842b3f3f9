/**
 * What a save and a restore cost: `node test/performance/checkpoint.bench.ts [MIB] [ROUNDS] [--json]`, a state of MIB MiB (512
 * where none are given), half of it float-like, a quarter zeros, a quarter JSON. A process of its own plays the job.
 *
 * Seen on 2 cores that others kept busy (load 5), Node 24.21, medians; CPU of the agent alone:
 *
 *   frames through the socket, thrown away   1.74 GB/s   0.55 s a GiB
 *   dd conv=fsync of the same bytes          0.84 GB/s (0.35 to 0.97)
 *   save by the SDK, whole                   0.26 GB/s   2.6-3.4 s a GiB: JSON 3.8, floats 1.5, zeros 0.2
 *   save by the SDK, nothing changed         0.56 GB/s   1.4-1.7 s a GiB
 *   restore, verified                        0.53 GB/s   1.7-1.8 s a GiB
 *
 * Peak memory over idle, with a real job of 512 MiB of noise: 79 MiB in a save, 132 MiB after its restore in one process.
 * A save of a few bytes takes 11 ms.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createHash, randomFillSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beginSave } from '../../src/checkpoints/chain/save.ts'
import { someMeta } from '../../src/checkpoints/chain/testing.ts'
import { directoryStore, jobKey, listenSdk, openStreams, readManifest } from '../../src/checkpoints/index.ts'
import { connection } from '../../src/checkpoints/sdk/connection.ts'
import { fakeSdk } from '../../src/checkpoints/sdk/testing.ts'
import { median, numbers, tell, told } from './rows.ts'

const mib = 1 << 20
const chunk = 64 << 10

/** 16 MiB after 16 MiB: floats, zeros, JSON, floats. */
const makeState = (bytes: number): Buffer => {
  const state = Buffer.alloc(bytes)
  for (let at = 0, kind = 0; at < bytes; at += 16 * mib, kind = (kind + 1) % 4) {
    const part = state.subarray(at, at + 16 * mib)
    if (kind === 0 || kind === 3) {
      randomFillSync(part)
      // the upper byte of a float varies little
      for (let i = 3; i < part.length; i += 4) part[i] = 0x3c + (part[i - 1]! & 1)
    } else if (kind === 2) {
      for (let i = 0, step = 0; i < part.length; step++)
        i +=
          part.write(
            `{"step":${step},"loss":${Math.random()},"name":"sample-${(Math.random() * 1e6) | 0}","tags":["train","val"]}\n`,
            i,
          ) || part.length
    }
  }
  return state
}

const framesOf = (state: Buffer, hashed: boolean) => {
  const frames: { bytes: number[]; sha256: (string | null)[]; payload: Buffer; first: number }[] = []
  const zeros = Buffer.alloc(chunk)
  for (let first = 0; first * chunk < state.length; first += 64) {
    const payload = state.subarray(first * chunk, (first + 64) * chunk)
    const sha256: (string | null)[] = []
    const parts: Buffer[] = []
    for (let at = 0; at < payload.length; at += chunk) {
      const part = payload.subarray(at, at + chunk)
      const isZero = part.equals(zeros)
      sha256.push(isZero ? null : hashed ? createHash('sha256').update(part).digest('hex') : 'x'.repeat(64))
      if (!isZero) parts.push(part)
    }
    frames.push({
      bytes: sha256.map(() => chunk),
      sha256,
      payload: parts.length === 64 ? payload : Buffer.concat(parts),
      first,
    })
  }
  return frames
}

/** The job: makes its state and its hashes beforehand, since what the SDK costs is measured with the SDK. */
const job = async (socketPath: string, bytes: number): Promise<void> => {
  const frames = framesOf(makeState(bytes), true)
  const sdk = await fakeSdk(socketPath)
  sdk.hello()
  if ((await sdk.expect('welcome')).restore !== null) throw new Error('there is nothing to restore here')
  await sdk.expect('run')
  sdk.say({ t: 'safe-point', turn: 1, asks: 'checkpoint' })
  for (;;) {
    const asked = await sdk.next()
    if (asked?.t !== 'save') return sdk.close()
    sdk.say({ t: 'save', id: asked.id, values: [], environment: {}, meta: null, streams: [{ name: 'buffers', bytes }] })
    for (const { payload, ...meta } of frames) {
      sdk.say({ t: 'chunks', id: asked.id, stream: 'buffers', ...meta }, payload)
      if (sdk.socket.writableLength > 8 * mib) await new Promise((resolve) => sdk.socket.once('drain', resolve))
    }
    sdk.say({ t: 'saved', id: asked.id, digest: 'd' })
    await sdk.expect('committed')
  }
}

/** Sends frames as fast as it can. */
const sender = async (socketPath: string, bytes: number): Promise<void> => {
  const sdk = await fakeSdk(socketPath)
  const payload = Buffer.alloc(4 * mib, 1)
  for (let sent = 0; sent < bytes; sent += payload.length) {
    sdk.say(
      {
        t: 'chunks',
        id: 1,
        stream: 'buffers',
        first: 0,
        bytes: Array(64).fill(chunk),
        sha256: Array(64).fill('x'.repeat(64)),
      },
      payload,
    )
    if (sdk.socket.writableLength > 8 * mib) await new Promise((resolve) => sdk.socket.once('drain', resolve))
  }
  sdk.socket.end()
}

const figures = new Map<string, number[]>()
const timed = async (what: string, bytes: number, act: () => Promise<unknown>): Promise<void> => {
  const cpu = process.cpuUsage()
  const started = performance.now()
  await act()
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const speeds = figures.get(what) ?? []
  speeds.push(bytes / seconds / 1e9)
  figures.set(what, speeds)
  console.error(
    `  ${what.padEnd(44)} ${(bytes / seconds / 1e9).toFixed(2)} GB/s  ${seconds.toFixed(2)} s, own CPU ${((user + system) / 1e6).toFixed(2)} s, peak ${(process.resourceUsage().maxRSS / 1024) | 0} MiB`,
  )
}

const main = async (bytes: number, rounds: number): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'portal-bench-'))
  const start = (role: string, path: string) =>
    spawn(process.execPath, [import.meta.filename, role, path, String(bytes)], { stdio: 'inherit' })
  try {
    const path = join(folder, 'frames')
    const listening = createServer()
    await new Promise<void>((resolve) => listening.listen(path, resolve))
    const arrived = new Promise<Socket>((resolve) => listening.once('connection', resolve))
    const sending = start('sender', path)
    const line = connection(await arrived)
    let left = bytes - (await line.next(10_000)).payload.length
    await timed('frames through the socket, thrown away', left, async () => {
      while (left > 0) left -= (await line.next(10_000)).payload.length
    })
    await new Promise((resolve) => sending.once('close', resolve))
    listening.close()

    const store = await directoryStore(join(folder, 'store'))
    const chain = { store, jobId: 'job', key: jobKey(Buffer.alloc(32, 1), 'job') }
    const server = await listenSdk({
      socketPath: join(folder, 's'),
      flagPath: join(folder, 'flag'),
      bitExact: false,
      restore: null,
    })
    const there = new Promise((resolve) => server.on('safePoint', resolve))
    const child = start('job', join(folder, 's'))
    server.run()
    await there
    const state = makeState(bytes)
    const plain = join(folder, 'plain')
    writeFileSync(plain, state)
    for (let round = 0; round < rounds; round++) {
      await timed('dd conv=fsync of the same bytes', bytes, async () =>
        execFileSync('dd', [`if=${plain}`, `of=${join(folder, 'dd')}`, 'bs=4M', 'conv=fsync'], { stdio: 'ignore' }),
      )
      const slot = 2 * round + 1
      await timed('save by the SDK, whole', bytes, async () => {
        const saved = await server.save({ ...chain, token: 1, slot, parent: null, savedAt: 0, notes: null })
        if (saved.is !== 'committed') throw new Error(JSON.stringify(saved))
      })
      await timed('save by the SDK, nothing changed', bytes, async () => {
        await server.save({ ...chain, token: 1, slot: slot + 1, parent: slot, savedAt: 0, notes: null })
      })
      await timed('restore, verified', bytes, async () => {
        let length = 0
        for await (const piece of openStreams(chain, await readManifest(chain, slot))) length += piece.bytes.length
        if (length !== bytes) throw new Error('not whole')
      })
    }
    await timed('save of bytes in memory', bytes, async () => {
      const writer = await beginSave({ ...chain, token: 1, slot: 2 * rounds + 1, parent: null })
      if (writer.is === 'fenced') throw new Error('fenced')
      const stream = writer.stream('buffers')
      await stream.write(state)
      await stream.end()
      await writer.commit(someMeta)
    })
    server.exit('done')
    await new Promise((resolve) => child.once('close', resolve))
    await server.close()
    tell([...figures].map(([what, speeds]) => told(what, `${median(speeds).toFixed(2)} GB/s`)))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const [role, path, length] = process.argv.slice(2)
if (role === 'job') await job(path as string, Number(length))
else if (role === 'sender') await sender(path as string, Number(length))
else {
  const [size = 512, rounds = 3] = numbers()
  await main(size * mib, rounds)
}
