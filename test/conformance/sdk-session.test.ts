import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { chainOn, noise, readBytes } from '../../src/checkpoints/chain/testing.ts'
import {
  listenSdk,
  memoryStore,
  readManifest,
  seal,
  type Manifest,
  type SaveOrder,
  type SdkOptions,
  type SdkServer,
} from '../../src/checkpoints/index.ts'
import { fakeSdk, isAsked, sendChunks, type FakeSdk } from '../../src/checkpoints/sdk/testing.ts'

let folder: string
let socketPath: string
let flagPath: string
const servers: SdkServer[] = []
const sdks: FakeSdk[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portal-sdk-'))
  socketPath = join(folder, 's')
  flagPath = join(folder, 'flag')
})
afterEach(async () => {
  for (const sdk of sdks.splice(0)) sdk.close()
  for (const server of servers.splice(0)) await server.close()
  await rm(folder, { recursive: true })
})

const listen = async (options: Partial<SdkOptions> = {}) => {
  const server = await listenSdk({ socketPath, flagPath, bitExact: false, restore: null, ...options })
  servers.push(server)
  return server
}
const dial = async () => {
  const sdk = await fakeSdk(socketPath)
  sdks.push(sdk)
  return sdk
}
const order = (chain = chainOn(memoryStore()), more: Partial<SaveOrder> = {}): SaveOrder => ({
  ...chain,
  token: 1,
  slot: 1,
  parent: null,
  savedAt: 1_700_000_000_000,
  notes: ['saw a notice'],
  ...more,
})
/** A job that runs, and one at a safe point. */
const running = async (options: Partial<SdkOptions> = {}) => {
  const server = await listen(options)
  const sdk = await dial()
  sdk.hello()
  await sdk.expect('welcome')
  server.run()
  await sdk.expect('run')
  return { server, sdk }
}
const atSafePoint = async (options: Partial<SdkOptions> = {}) => {
  const { server, sdk } = await running(options)
  const there = server.safePoint(5000)
  sdk.say({ t: 'safe-point', turn: 7, asks: null })
  expect(await there).toEqual({ is: 'there', turn: 7, asks: null })
  return { server, sdk }
}
const disconnected = (server: SdkServer) => new Promise<string>((resolve) => server.on('disconnected', resolve))
const state = {
  graph: noise(1000, 'graph'),
  buffers: Buffer.concat([noise(300_000, 'b'), Buffer.alloc(200_000), noise(10, 'c')]),
}

describe('start', () => {
  test('a job without a checkpoint waits until it may run', async () => {
    const server = await listen()
    const sdk = await dial()
    sdk.hello()
    expect(await sdk.expect('welcome')).toMatchObject({ restore: null, bitExact: false })
    expect(await server.restored()).toEqual({ is: 'nothing' })
    expect(server.client).toMatchObject({ language: 'python', version: '0.1', again: false })
    server.run()
    server.run()
    await sdk.expect('run')
    sdk.say({ t: 'safe-point', turn: 1, asks: null })
    await sdk.expect('go')
  })

  test('the socket and the flag are private; the flag begins empty', async () => {
    const server = await listen()
    for (const path of [socketPath, flagPath]) expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await stat(flagPath)).size).toBe(64)
    expect(server.progress()).toEqual({ turns: 0, done: null, total: null })
    await server.close()
    expect(await readdir(folder)).toEqual(['flag'])
  })

  test('what the job counts is read; a flag that is there is kept for a job that has it in memory', async () => {
    const bytes = Buffer.alloc(64)
    bytes.writeBigUInt64LE(12n, 8)
    bytes.writeDoubleLE(3.5, 16)
    bytes.writeDoubleLE(Number.NaN, 24)
    await writeFile(flagPath, bytes)
    const before = await stat(flagPath)
    const server = await listen()
    expect(server.progress()).toEqual({ turns: 12, done: 3.5, total: null })
    expect((await stat(flagPath)).ino).toBe(before.ino)
    await server.close()
    expect(server.progress()).toMatchObject({ turns: 12 })
  })

  test('a socket that a killed agent left is replaced, anything else in its place is not', async () => {
    const first = await listen()
    await first.close()
    await writeFile(socketPath, 'a file')
    await expect(listen()).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await expect(listen({ socketPath: join(folder, 'x'.repeat(200)) })).rejects.toThrow('107 bytes')
  })
})

describe('safe point', () => {
  test('the flag is set by asking and cleared before the job goes on', async () => {
    const { server, sdk } = await running()
    expect(isAsked(flagPath)).toBe(false)
    server.ask()
    expect(isAsked(flagPath)).toBe(true)
    sdk.say({ t: 'safe-point', turn: 3, asks: null })
    expect(await server.safePoint(1000)).toMatchObject({ is: 'there', turn: 3 })
    expect(isAsked(flagPath)).toBe(true)
    server.go()
    await sdk.expect('go')
    expect(isAsked(flagPath)).toBe(false)
    expect(server.at).toBeNull()
  })

  test('a job that does not come is late, and is not asked any more', async () => {
    const { server, sdk } = await running()
    const late = server.safePoint(20)
    expect(isAsked(flagPath)).toBe(true)
    expect(await late).toEqual({ is: 'late' })
    expect(isAsked(flagPath)).toBe(false)
    sdk.say({ t: 'safe-point', turn: 3, asks: null })
    await sdk.expect('go')
  })

  test('who waits no longer does not take the question from who still waits', async () => {
    const { server, sdk } = await running()
    const first = server.safePoint(30)
    const second = server.safePoint(5000)
    expect(await first).toEqual({ is: 'late' })
    expect(isAsked(flagPath)).toBe(true)
    sdk.say({ t: 'safe-point', turn: 3, asks: null })
    expect(await second).toMatchObject({ is: 'there' })
    server.go()
    await sdk.expect('go')
    const third = server.safePoint(5000)
    server.unask()
    expect(await third).toEqual({ is: 'late' })
    expect(isAsked(flagPath)).toBe(false)
  })

  test('asked again right after go, it is the next safe point that is meant', async () => {
    const { server, sdk } = await atSafePoint()
    server.go()
    const next = server.safePoint(5000)
    await sdk.expect('go')
    expect(isAsked(flagPath)).toBe(true)
    sdk.say({ t: 'safe-point', turn: 8, asks: null })
    expect(await next).toEqual({ is: 'there', turn: 8, asks: null })
  })

  test('a job in Node hears at once that it is asked', async () => {
    const server = await listen()
    const sdk = await dial()
    sdk.hello({ sdk: 'node' })
    await sdk.expect('welcome')
    server.ask()
    server.run()
    await sdk.expect('run')
    expect((await sdk.expect('ask')).t).toBe('ask')
    server.ask()
    expect((await sdk.expect('ask')).t).toBe('ask')
  })

  test('a job that asks for a checkpoint itself waits for it', async () => {
    const { server, sdk } = await running()
    const there = new Promise((resolve) => server.on('safePoint', resolve))
    sdk.say({ t: 'safe-point', turn: 9, asks: 'checkpoint' })
    expect(await there).toEqual({ turn: 9, asks: 'checkpoint' })
    server.go()
    await sdk.expect('go')
  })

  test('a job that leaves, and a conversation that is closed, end the wait', async () => {
    const { server, sdk } = await running()
    const first = server.safePoint(5000)
    sdk.close()
    expect(await first).toEqual({ is: 'disconnected' })
    const second = server.safePoint(5000)
    await server.close()
    expect(await second).toEqual({ is: 'closed' })
    expect(await server.safePoint(1)).toEqual({ is: 'closed' })
  })

  test('a job is ended from where it waits', async () => {
    const { server, sdk } = await atSafePoint()
    server.exit('it was suspended')
    expect(await sdk.expect('exit')).toMatchObject({ why: 'it was suspended' })
  })

  test('a job that comes after it was told to end is not started first', async () => {
    const server = await listen()
    server.exit('stopped')
    const sdk = await dial()
    sdk.hello()
    expect(await sdk.expect('exit')).toMatchObject({ why: 'stopped' })
  })

  test('a job that waits for its start is ended there', async () => {
    const server = await listen()
    const sdk = await dial()
    sdk.hello()
    await sdk.expect('welcome')
    server.exit('stopped')
    expect(await sdk.expect('exit')).toMatchObject({ why: 'stopped' })
  })
})

describe('probe', () => {
  test('says how large the state is, or names what cannot be carried', async () => {
    const { server, sdk } = await atSafePoint()
    const probing = server.probe()
    const { id } = await sdk.expect('probe')
    sdk.say({ t: 'probed', id, bytes: 100, objects: 3, ms: 0.5 })
    expect(await probing).toEqual({ is: 'probed', bytes: 100, objects: 3, ms: 0.5 })
    const again = server.probe()
    const values = [{ path: 'state.sock', type: 'socket.socket', reason: 'open', advice: 'close it' }]
    sdk.say({ t: 'refused', id: (await sdk.expect('probe')).id, values })
    expect(await again).toEqual({ is: 'refused', values })
  })

  test('only at a safe point, and one thing at a time', async () => {
    const { server, sdk } = await running()
    expect(await server.probe()).toEqual({ is: 'failed', why: 'the job is not at a safe point' })
    sdk.say({ t: 'safe-point', turn: 1, asks: null })
    await server.safePoint(1000)
    const first = server.probe()
    expect(await server.probe()).toEqual({ is: 'failed', why: 'something else is being asked of the job' })
    await server.close()
    expect(await first).toEqual({ is: 'failed', why: 'the agent ended the conversation' })
  })

  test('told to go while it is asked, the job goes when it has answered', async () => {
    const { server, sdk } = await atSafePoint()
    const probing = server.probe()
    const { id } = await sdk.expect('probe')
    server.go()
    sdk.say({ t: 'probed', id, bytes: 1, objects: 1, ms: 1 })
    expect(await probing).toMatchObject({ is: 'probed' })
    await sdk.expect('go')
  })
})

describe('save', () => {
  const saved = async (chain = chainOn(memoryStore()), more: Partial<SaveOrder> = {}) => {
    const { server, sdk } = await atSafePoint()
    const saving = server.save(order(chain, more))
    await sdk.save(state)
    return { server, sdk, saving, chain }
  }

  test('K-WHOLE-1 the state is committed with all that belongs to it, and the job is held until go', async () => {
    const { server, sdk, saving, chain } = await saved()
    const outcome = await saving
    expect(outcome).toMatchObject({ is: 'committed', slot: 1, bytes: 501_010 })
    expect(await sdk.expect('committed')).toMatchObject({ slot: 1 })
    const manifest = await readManifest(chain, 1)
    expect(manifest).toMatchObject({
      token: 1,
      digest: 'digest',
      meta: { opaque: true },
      notes: ['saw a notice'],
      values: [{ path: 'state.x', kind: 'bytes', bytes: 1 }],
      environment: { language: 'python' },
    })
    expect(await readBytes(chain, manifest)).toEqual(state)
    expect(server.at).not.toBeNull()
    server.go()
    await sdk.expect('go')
  })

  test('what the agent adds is in the same checkpoint', async () => {
    const { saving, chain } = await saved(undefined, {
      more: async (writer) => {
        const stream = writer.stream('outputs')
        await stream.write(Buffer.from('a file'))
        await stream.end()
        return []
      },
    })
    expect(await saving).toMatchObject({ is: 'committed' })
    expect((await readBytes(chain, await readManifest(chain, 1)))['outputs']).toEqual(Buffer.from('a file'))
  })

  test('K-STRICT-1 values that cannot be carried are named, nothing is written, and the job runs on', async () => {
    const { server, sdk } = await atSafePoint()
    const chain = chainOn(memoryStore())
    const saving = server.save(order(chain))
    const values = [{ path: 'state.sock', type: 'socket.socket', reason: 'open', advice: 'close it' }]
    sdk.say({ t: 'refused', id: (await sdk.expect('save')).id, values })
    expect(await saving).toEqual({ is: 'refused', values })
    expect(await chain.store.slots('job')).toEqual([])
    server.go()
    await sdk.expect('go')
  })

  test('a job that leaves while its files are added has no checkpoint of that moment', async () => {
    const chain = chainOn(memoryStore())
    const { server, sdk } = await atSafePoint()
    const gone = disconnected(server)
    const saving = server.save(
      order(chain, {
        more: async () => {
          sdk.close()
          await gone
          return []
        },
      }),
    )
    await sdk.save(state)
    expect(await saving).toMatchObject({ is: 'failed' })
    expect(await chain.store.slots('job')).toEqual([])
  })

  test('K-STRICT-3 a file that cannot be carried refuses the save', async () => {
    const values = [{ path: 'out.bin', type: 'file', reason: 'changed while it was read', advice: 'stop writing' }]
    const { sdk, saving, chain } = await saved(undefined, { more: async () => values })
    expect(await saving).toEqual({ is: 'refused', values })
    await sdk.expect('save-failed')
    expect(await chain.store.list('job/')).toEqual([])
  })

  test('a fenced writer is told, before it asks and after', async () => {
    const chain = chainOn(memoryStore())
    const { server, sdk, saving } = await saved(chain, {
      more: async () => {
        await seal({ ...chain, after: 0, by: 'move' })
        return []
      },
    })
    expect(await saving).toEqual({ is: 'fenced', by: { is: 'seal' } })
    await sdk.expect('save-failed')
    expect(await server.save(order(chain))).toEqual({ is: 'fenced', by: { is: 'seal' } })
  })

  test('K-STORE-2 a full disk fails the save by name; all chunks are read and the job goes on', async () => {
    const store = memoryStore({
      at: (call) => {
        if (call === 'close') throw new Error('no room left; free some, or keep checkpoints elsewhere')
      },
    })
    const { server, sdk, saving } = await saved(chainOn(store))
    expect(await saving).toMatchObject({ is: 'failed', why: expect.stringContaining('no room left') })
    expect(await sdk.expect('save-failed')).toMatchObject({ why: expect.stringContaining('no room left') })
    server.go()
    await sdk.expect('go')
    expect(store.objects.size + store.records.size).toBe(0)
  })

  test('K-WHOLE-2 a chunk that changed after it was hashed fails the save', async () => {
    const { server, sdk } = await atSafePoint()
    const chain = chainOn(memoryStore())
    const saving = server.save(order(chain))
    const { id } = await sdk.expect('save')
    sdk.say({ t: 'save', id, values: [], environment: {}, meta: null, streams: [{ name: 'graph', bytes: 300_000 }] })
    sendChunks(
      (meta, payload) => {
        payload![70_000]! ^= 1
        sdk.say(meta, payload)
      },
      Number(id),
      'graph',
      noise(300_000, 'x'),
    )
    sdk.say({ t: 'saved', id, digest: 'd' })
    expect(await saving).toMatchObject({ is: 'failed', why: expect.stringContaining('does not have the hash') })
    await sdk.expect('save-failed')
    expect(await chain.store.slots('job')).toEqual([])
  })

  test('a client that is killed in the middle: the save counts as not made, and the next client is heard', async () => {
    const { server, sdk } = await atSafePoint()
    const chain = chainOn(memoryStore())
    const saving = server.save(order(chain))
    const { id } = await sdk.expect('save')
    sdk.say({ t: 'save', id, values: [], environment: {}, meta: null, streams: [{ name: 'graph', bytes: 10_000_000 }] })
    sendChunks(sdk.say, Number(id), 'graph', noise(1 << 20, 'x'))
    await new Promise<void>((resolve) => sdk.socket.end(resolve))
    expect(await saving).toMatchObject({ is: 'failed', why: 'the job closed the connection' })
    expect(await chain.store.list('job/')).toEqual([])
    const back = await dial()
    back.hello({ again: true, turn: 8 })
    expect(await back.expect('welcome')).toMatchObject({ restore: null })
    back.say({ t: 'safe-point', turn: 8, asks: null })
    expect(await server.safePoint(1000)).toMatchObject({ is: 'there', turn: 8 })
    const again = server.save(order(chain))
    await back.save(state)
    expect(await again).toMatchObject({ is: 'committed' })
  })

  test.each<[string, string, (sdk: FakeSdk, id: number) => void]>([
    [
      'chunks of another stream',
      'where chunk 0 of graph was due',
      (sdk, id) => sendChunks(sdk.say, id, 'buffers', noise(10, 'x')),
    ],
    [
      'chunks of another save',
      'where chunk 0 of graph was due',
      (sdk, id) => sendChunks(sdk.say, id + 1, 'graph', noise(10, 'x')),
    ],
    ['saved too early', 'where chunk', (sdk, id) => sdk.say({ t: 'saved', id, digest: 'd' })],
    [
      '65 chunks a frame',
      'not 1 to 64',
      (sdk, id) =>
        sdk.say({ t: 'chunks', id, stream: 'graph', first: 0, bytes: Array(65).fill(1), sha256: Array(65).fill(null) }),
    ],
    [
      'lengths that are none',
      'are none',
      (sdk, id) => sdk.say({ t: 'chunks', id, stream: 'graph', first: 0, bytes: ['1'], sha256: [null] }),
    ],
    ['silence', 'said nothing', () => {}],
  ])('%s ends the connection by name', async (_, why, misbehave) => {
    const { server, sdk } = await atSafePoint({ limits: { frame: 100 } })
    const chain = chainOn(memoryStore())
    const gone = disconnected(server)
    const saving = server.save(order(chain))
    const { id } = await sdk.expect('save')
    sdk.say({ t: 'save', id, values: [], environment: {}, meta: null, streams: [{ name: 'graph', bytes: 500_000 }] })
    misbehave(sdk, Number(id))
    expect(await saving).toMatchObject({ is: 'failed', why: expect.stringContaining(why) })
    expect(await gone).toContain(why)
    expect(await chain.store.list('job/')).toEqual([])
  })

  test('chunks shorter than the stream was said to be are never committed', async () => {
    const { server, sdk } = await atSafePoint()
    const chain = chainOn(memoryStore())
    const saving = server.save(order(chain))
    const { id } = await sdk.expect('save')
    sdk.say({ t: 'save', id, values: [], environment: {}, meta: null, streams: [{ name: 'graph', bytes: 500 }] })
    sendChunks(sdk.say, Number(id), 'graph', noise(499, 'x'))
    sdk.say({ t: 'saved', id, digest: 'd' })
    expect(await saving).toMatchObject({ is: 'failed', why: expect.stringContaining('not as long') })
    expect(await chain.store.slots('job')).toEqual([])
  })
})

describe('restore', () => {
  const savedOnce = async (digest = 'digest') => {
    const chain = chainOn(memoryStore())
    const { server, sdk } = await atSafePoint()
    const saving = server.save(
      order(chain, {
        more: async (writer) => {
          const stream = writer.stream('outputs')
          await stream.write(noise(1000, 'files'))
          await stream.end()
          return []
        },
      }),
    )
    await sdk.save(state, { digest, meta: { where: [1, 2] } })
    await saving
    sdk.close()
    await server.close()
    const manifest = await readManifest(chain, 1)
    return { chain, manifest, restore: { ...chain, manifest } }
  }
  const taking = async (sdk: FakeSdk, manifest: Manifest) => {
    const got: Record<string, Buffer> = {}
    for (const { name, bytes } of manifest.streams) if (name !== 'outputs') got[name] = Buffer.alloc(bytes, 1)
    for (;;) {
      const frame = await sdk.next()
      if (frame?.t !== 'data') return { got, last: frame }
      got[String(frame.stream)]?.set(frame.bytes, Number(frame.offset))
    }
  }

  test('K-WHOLE-3 every byte comes back, and the digest of the live values is compared before it runs', async () => {
    const { manifest, restore } = await savedOnce()
    const server = await listen({ restore })
    const sdk = await dial()
    sdk.hello()
    const welcome = await sdk.expect('welcome')
    expect(welcome.restore).toMatchObject({
      slot: 1,
      digest: 'digest',
      meta: { where: [1, 2] },
      streams: [
        { name: 'graph', bytes: 1000 },
        { name: 'buffers', bytes: 500_010 },
      ],
    })
    const { got, last } = await taking(sdk, manifest)
    expect(last?.t).toBe('verified')
    expect(got).toEqual(state)
    server.run()
    sdk.say({ t: 'restored', digest: 'digest' })
    expect(await server.restored()).toMatchObject({ is: 'restored' })
    await sdk.expect('run')
  })

  test('K-WHOLE-3 values that came out with another digest never run', async () => {
    const { manifest, restore } = await savedOnce()
    const server = await listen({ restore })
    const sdk = await dial()
    sdk.hello()
    await sdk.expect('welcome')
    await taking(sdk, manifest)
    server.run()
    sdk.say({ t: 'restored', digest: 'another' })
    expect(await server.restored()).toMatchObject({ is: 'damaged', why: expect.stringContaining('another') })
    await sdk.expect('exit')
  })

  test('K-WHOLE-2 damage is told, and `verified` is never said', async () => {
    const { chain, manifest, restore } = await savedOnce()
    const store = chain.store as ReturnType<typeof memoryStore>
    for (const [key, bytes] of store.objects) if (key.endsWith('pack')) bytes[200_000]! ^= 1
    const server = await listen({ restore })
    const sdk = await dial()
    sdk.hello()
    await sdk.expect('welcome')
    const { last } = await taking(sdk, manifest)
    expect(last).toMatchObject({ t: 'damaged', what: expect.stringContaining('buffers') })
    expect(await server.restored()).toMatchObject({ is: 'damaged' })
  })

  test('an environment that cannot take the state refuses by name', async () => {
    const { manifest, restore } = await savedOnce()
    const server = await listen({ restore })
    const sdk = await dial()
    sdk.hello()
    await sdk.expect('welcome')
    await taking(sdk, manifest)
    const values = [{ path: 'state.m', type: 'numpy.ndarray', reason: 'numpy is not here', advice: 'install it' }]
    sdk.say({ t: 'restore-refused', values, why: 'a package is missing' })
    expect(await server.restored()).toEqual({ is: 'refused', values, why: 'a package is missing' })
    await sdk.expect('exit')
  })

  test('a job that lost its agent while it waits comes back with its values in place, and its digest counts', async () => {
    const { manifest, restore } = await savedOnce()
    for (const [digest, next] of [
      [manifest.digest, 'run'],
      ['another', 'exit'],
    ] as const) {
      const server = await listen({ restore })
      const sdk = await dial()
      sdk.hello({ again: true, waiting: true, digest })
      expect(await sdk.expect('welcome')).toMatchObject({ restore: null })
      server.run()
      await sdk.expect(next)
      sdk.close()
      await server.close()
    }
  })

  test('a job that is killed while it is restored can be started anew', async () => {
    const { manifest, restore } = await savedOnce()
    const server = await listen({ restore })
    const first = await dial()
    first.hello()
    await first.expect('welcome')
    first.close()
    const second = await dial()
    second.hello()
    await second.expect('welcome')
    expect((await taking(second, manifest)).got).toEqual(state)
    second.say({ t: 'restored', digest: 'digest' })
    expect(await server.restored()).toMatchObject({ is: 'restored' })
  })
})

describe('hostile clients', () => {
  const head = (meta: number, payload: number) => {
    const bytes = Buffer.alloc(8)
    bytes.writeUInt32LE(meta, 0)
    bytes.writeUInt32LE(payload, 4)
    return bytes
  }
  const frame = (text: string) => Buffer.concat([head(Buffer.byteLength(text), 0), Buffer.from(text)])
  test.each<[string, string, Uint8Array]>([
    ['a giant meta', '2 to 1048576', head(0xffffffff, 0)],
    ['a meta just too long', '2 to 1048576', head((1 << 20) + 1, 0)],
    ['a giant payload', 'up to 8388608', head(10, 0xffffffff)],
    ['an empty meta', 'meta has 0 bytes', head(0, 0)],
    ['not JSON', 'not JSON', frame('{"t":')],
    ['not an object', 'not an object', frame('"hello"')],
    ['null', 'not an object', frame('null')],
    ['no name', 'not an object with a name', frame('{"x":1}')],
    ['another name', 'where hello was due', frame('{"t":"save"}')],
    ['a name of the prototype', 'where hello was due', frame('{"t":"__proto__"}')],
    ['a hello without its fields', 'hello is not as agreed', frame('{"t":"hello"}')],
    ['noise', 'allowed', noise(4096, 'garbage')],
    ['silence', 'said nothing for 0.2 s', Buffer.alloc(0)],
  ])('%s ends the connection by name, and the next client is heard', async (_, why, bytes) => {
    const server = await listen({ limits: { hello: 200 } })
    const gone = disconnected(server)
    const bad = await dial()
    bad.raw(bytes)
    expect(await gone).toContain(why)
    expect(await bad.next()).toBeNull()
    const good = await dial()
    good.hello()
    await good.expect('welcome')
  })

  test('another protocol is told and refused', async () => {
    await listen()
    const sdk = await dial()
    sdk.hello({ protocol: 2 })
    expect(await sdk.expect('exit')).toMatchObject({ why: expect.stringContaining('protocol') })
  })

  test('a second client is not let in while the first is there', async () => {
    const { server, sdk } = await atSafePoint()
    const second = await dial()
    second.hello()
    expect(await second.next()).toBeNull()
    server.go()
    await sdk.expect('go')
    sdk.close()
    const third = await dial()
    third.hello({ again: true })
    await third.expect('welcome')
  })

  test('a head that comes byte by byte is a frame like any other', async () => {
    await listen()
    const sdk = await dial()
    const text = JSON.stringify({ t: 'hello', protocol: 1, sdk: 'node', version: '1', pid: 1, environment: {} })
    for (const byte of frame(text)) {
      sdk.raw(Buffer.from([byte]))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await sdk.expect('welcome')).toMatchObject({ restore: null })
  })
})
