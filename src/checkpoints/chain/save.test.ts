import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { CommitUnknownError, HashMismatch } from '../errors.ts'
import { memoryStore } from '../memory/index.ts'
import { chunkBytes } from './format.ts'
import { readManifest, verify } from './read.ts'
import { beginSave } from './save.ts'
import { seal } from './seal.ts'
import { chainOn, noise, readBytes, saveBytes, someMeta } from './testing.ts'

const first = { token: 1, slot: 1, parent: null }
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

test('K-WHOLE-1 what was saved is read back, whatever its length and kind', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          length: fc.oneof(
            fc.integer({ min: 0, max: 300_000 }),
            fc.constantFrom(0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1),
          ),
          kind: fc.constantFrom('zeros', 'text', 'noise'),
        }),
        { maxLength: 4 },
      ),
      fc.integer({ min: 1, max: 200_000 }),
      async (streams, cut) => {
        const chain = chainOn(memoryStore())
        const writer = await beginSave({ ...chain, ...first })
        if (writer.is === 'fenced') throw new Error('fenced')
        const written: Record<string, Buffer> = {}
        for (const [i, { length, kind }] of streams.entries()) {
          const bytes =
            kind === 'zeros'
              ? Buffer.alloc(length)
              : kind === 'text'
                ? Buffer.alloc(length, 'abcdefg ')
                : noise(length, `${i}`)
          written[`s${i}`] = bytes
          const stream = writer.stream(`s${i}`)
          for (let at = 0; at < length; at += cut) await stream.write(bytes.subarray(at, at + cut))
          expect(await stream.end()).toBe(length)
        }
        const saved = await writer.commit(someMeta)
        if (saved.is !== 'committed') throw new Error('fenced')
        const manifest = await readManifest(chain, 1)
        expect(manifest).toEqual(saved.manifest)
        await verify(chain, manifest)
        expect(await readBytes(chain, manifest)).toEqual(written)
      },
    ),
    { numRuns: 40 },
  )
})

test('zeros are not stored, text is compressed, noise is left as it is', async () => {
  const store = memoryStore()
  const chain = chainOn(store)
  const stored = async (slot: number, bytes: Buffer) => {
    const saved = await saveBytes(chain, { token: 1, slot, parent: null }, { data: bytes })
    return saved.is === 'committed' ? saved.storedBytes : -1
  }
  const mib = 1 << 20
  expect(await stored(1, Buffer.alloc(mib))).toBeLessThan(1000)
  expect(
    await stored(2, Buffer.concat(Array.from({ length: 8 }, (_, i) => Buffer.alloc(mib / 8, `{"step":${i}},`)))),
  ).toBeLessThan(mib / 10)
  expect(await stored(3, noise(mib, 'x'))).toBe(mib + 16 * 48)
})

test('K-WHOLE-1 a save takes over what its parent has and stores only what changed', async () => {
  const chain = chainOn(memoryStore())
  const state = noise(64 * chunkBytes, 'state')
  await saveBytes(chain, first, { graph: Buffer.from('one'), buffers: state })
  state.write('changed', 5 * chunkBytes)
  const second = await saveBytes(
    chain,
    { token: 1, slot: 2, parent: 1 },
    { graph: Buffer.from('two!'), buffers: state },
  )
  expect(second).toMatchObject({ is: 'committed', storedBytes: chunkBytes + 4 + 65 * 48 })
  state.write('again', 9 * chunkBytes)
  await saveBytes(chain, { token: 1, slot: 3, parent: 2 }, { graph: Buffer.from('three'), buffers: state })
  const manifest = await readManifest(chain, 3)
  expect(manifest.packs.map(({ key }) => key.slice(0, 10))).toEqual(['job/000003', 'job/000001', 'job/000002'])
  expect((await readBytes(chain, manifest)).buffers).toEqual(state)
})

test('nothing is taken over from a pack of which little is in use, nor behind a foreign manifest', async () => {
  const chain = chainOn(memoryStore())
  const state = noise(64 * chunkBytes, 'state')
  await saveBytes(chain, first, { buffers: state })
  const few = state.subarray(0, 8 * chunkBytes)
  await saveBytes(chain, { token: 1, slot: 2, parent: 1 }, { buffers: few })
  const third = await saveBytes(chain, { token: 1, slot: 3, parent: 2 }, { buffers: few })
  expect(third).toMatchObject({ manifest: { packs: [{ key: expect.stringContaining('job/000003') }] } })
  const fourth = await saveBytes(chain, { token: 1, slot: 4, parent: 1 }, { buffers: few })
  expect(fourth).toMatchObject({ manifest: { parent: 1, packs: [{ key: expect.stringContaining('job/000004') }] } })
})

test('K-WHOLE-1 a slot taken by another attempt, or sealed, fences the writer, which leaves nothing behind', async () => {
  const store = memoryStore()
  const chain = chainOn(store)
  const late = await beginSave({ ...chain, ...first })
  if (late.is === 'fenced') throw new Error('too early')
  const stream = late.stream('graph')
  await stream.write(noise(chunkBytes, 'late'))
  await stream.end()
  await saveBytes(chain, { token: 2, slot: 1, parent: null }, { graph: Buffer.from('other') })
  expect(await late.commit(someMeta)).toEqual({ is: 'fenced', by: { is: 'manifest', token: 2 } })
  expect(await store.list('job/')).toHaveLength(2)
  expect(await beginSave({ ...chain, ...first })).toEqual({ is: 'fenced', by: { is: 'manifest', token: 2 } })
  await seal({ ...chain, after: 1, by: 'move' })
  expect(await beginSave({ ...chain, token: 2, slot: 2, parent: 1 })).toEqual({ is: 'fenced', by: { is: 'seal' } })
})

test('a slot whose forerunner is free is refused: the store has gone back', async () => {
  await expect(beginSave({ ...chainOn(memoryStore()), token: 1, slot: 3, parent: 2 })).rejects.toMatchObject({
    name: 'ChainGapError',
  })
})

test('K-WHOLE-2 bytes that changed after they were hashed are never committed', async () => {
  const store = memoryStore()
  const writer = await beginSave({ ...chainOn(store), ...first })
  if (writer.is === 'fenced') throw new Error('fenced')
  const stream = writer.stream('buffers')
  const bytes = noise(chunkBytes * 2, 'sent')
  await stream.chunks(
    bytes.subarray(0, chunkBytes),
    [chunkBytes, chunkBytes],
    [sha256(bytes.subarray(0, chunkBytes)), null],
  )
  const hash = sha256(bytes.subarray(chunkBytes))
  bytes[chunkBytes + 77]! ^= 1
  await expect(stream.chunks(bytes.subarray(chunkBytes), [chunkBytes], [hash])).rejects.toThrow(HashMismatch)
  await expect(writer.commit(someMeta)).rejects.toThrow(HashMismatch)
  await writer.abort()
  expect(store.records.size + store.objects.size).toBe(0)
})

test.each([
  ['more bytes than chunks', 10, [9], ['x']],
  ['fewer bytes than chunks', 10, [11], ['x']],
  ['a chunk too long', chunkBytes + 1, [chunkBytes + 1], ['x']],
  ['a chunk of nothing', 0, [0], [null]],
  ['a short chunk in the middle', 0, [10, 10], [null, null]],
  ['not one hash a chunk', 10, [10], []],
])('chunks that do not fit together are refused: %s', async (_, length, lengths, hashes) => {
  const writer = await beginSave({ ...chainOn(memoryStore()), ...first })
  if (writer.is === 'fenced') throw new Error('fenced')
  const bytes = Buffer.alloc(length, 1)
  const sent = hashes.map((hash) => hash && sha256(bytes.subarray(0, lengths[0])))
  await expect(writer.stream('buffers').chunks(bytes, lengths, sent)).rejects.toThrow(RangeError)
})

test('K-STORE-2 an answer that was lost is asked for again with the same bytes', async () => {
  let lost = 2
  const store = memoryStore({
    at: (call, when) => {
      if (call === 'createSlot' && when === 'after' && lost-- > 0) throw new Error('connection reset')
    },
  })
  expect(await saveBytes(chainOn(store), first, { graph: Buffer.from('x') })).toMatchObject({ is: 'committed' })
})

test('an answer that never comes leaves everything in place, and the commit can be repeated', async () => {
  let away = true
  const store = memoryStore({
    at: (call, when) => {
      if (call === 'createSlot' && when === 'after' && away) throw new Error('connection reset')
    },
  })
  const chain = chainOn(store)
  const writer = await beginSave({ ...chain, ...first })
  if (writer.is === 'fenced') throw new Error('fenced')
  const stream = writer.stream('graph')
  await stream.write(Buffer.from('x'))
  await stream.end()
  await expect(writer.commit(someMeta)).rejects.toThrow(CommitUnknownError)
  await writer.abort()
  away = false
  await verify(chain, await readManifest(chain, 1))
  expect(await writer.commit(someMeta)).toMatchObject({ is: 'committed', slot: 1 })
})

test('K-STORE-2 a store that fails half way leaves nothing that counts, and the checkpoint before', async () => {
  for (const failing of ['create', 'write', 'close'] as const) {
    let fail = false
    const store = memoryStore({
      at: (call, when) => {
        if (fail && call === failing && when === 'before') throw new Error('no room')
      },
    })
    const chain = chainOn(store)
    await saveBytes(chain, first, { graph: noise(chunkBytes, 'one') })
    const keys = await store.list('job/')
    const writer = await beginSave({ ...chain, token: 1, slot: 2, parent: 1 })
    if (writer.is === 'fenced') throw new Error('fenced')
    fail = true
    const stream = writer.stream('graph')
    const filling = async () => {
      await stream.write(noise(50 * chunkBytes, 'two'))
      await stream.end()
      await writer.commit(someMeta)
    }
    await expect(filling()).rejects.toThrow('no room')
    await writer.abort()
    fail = false
    expect(await store.list('job/')).toEqual(keys)
    await verify(chain, await readManifest(chain, 1))
  }
})
