import { expect, test } from 'vitest'
import { memoryStore } from '../memory/index.ts'
import { collect, removeJob } from './collect.ts'
import { chunkBytes } from './format.ts'
import { readManifest, verify } from './read.ts'
import { beginSave } from './save.ts'
import { seal } from './seal.ts'
import { chainOn, noise, saveBytes, someMeta } from './testing.ts'

/** Five checkpoints, each with one chunk of its own beside those that it took over. */
const five = async (options?: Parameters<typeof memoryStore>[0]) => {
  const store = memoryStore(options)
  const chain = chainOn(store)
  const state = noise(8 * chunkBytes, 'state')
  for (let slot = 1; slot <= 5; slot++) {
    noise(chunkBytes, `change ${slot}`).copy(state, slot * chunkBytes)
    await saveBytes(chain, { token: 1, slot, parent: slot > 1 ? slot - 1 : null }, { graph: state })
  }
  return { store, chain }
}

test('K-WHOLE-5 what a kept manifest names stays, the rest of dropped slots goes', async () => {
  const { store, chain } = await five()
  expect(await collect({ ...chain, verified: 4, keep: [2] })).toEqual({ dropped: [1, 3], removedKeys: 2 })
  for (const slot of [2, 4, 5]) await verify(chain, await readManifest(chain, slot))
  await expect(readManifest(chain, 3)).rejects.toMatchObject({ damage: 'slot-dropped' })
  expect(store.objects.size).toBe(8)
  expect(await collect({ ...chain, verified: 4, keep: [2] })).toEqual({ dropped: [], removedKeys: 0 })
  expect(await collect({ ...chain, verified: 5, keep: [] })).toMatchObject({ dropped: [2, 4] })
  await verify(chain, await readManifest(chain, 5))
})

test('a slot that was dropped stays taken: nobody gets in there', async () => {
  const { chain } = await five()
  await collect({ ...chain, verified: 5, keep: [] })
  expect(await saveBytes(chain, { token: 9, slot: 3, parent: null }, {})).toEqual({
    is: 'fenced',
    by: { is: 'dropped' },
  })
})

test('K-WHOLE-5 a save under way loses nothing, and what it took over stays', async () => {
  const { chain } = await five()
  const writer = await beginSave({ ...chain, token: 1, slot: 6, parent: 5 })
  if (writer.is === 'fenced') throw new Error('fenced')
  const stream = writer.stream('graph')
  const state = noise(8 * chunkBytes, 'state')
  for (let slot = 1; slot <= 5; slot++) noise(chunkBytes, `change ${slot}`).copy(state, slot * chunkBytes)
  await stream.write(state)
  await stream.end()
  await collect({ ...chain, verified: 5, keep: [] })
  expect(await writer.commit(someMeta)).toMatchObject({ is: 'committed', storedBytes: 8 * 48 })
  await verify(chain, await readManifest(chain, 6))
})

test('K-WHOLE-5 what an attempt left that was fenced goes with its slot', async () => {
  const { store, chain } = await five()
  await store.put('job/000002/9-abc/pack', Buffer.from('left over'))
  await store.put('job/000006/9-abc/pack', Buffer.from('under way'))
  await seal({ ...chain, after: 5, by: 'x' })
  await collect({ ...chain, verified: 5, keep: [] })
  expect(store.objects.has('job/000002/9-abc/pack')).toBe(false)
  expect(store.objects.has('job/000006/9-abc/pack')).toBe(true)
})

test('where a manifest that stays cannot be read, nothing is removed', async () => {
  const { store, chain } = await five()
  store.records.set('job/2', Buffer.from('nonsense'))
  const objects = store.objects.size
  await expect(collect({ ...chain, verified: 4, keep: [2] })).rejects.toMatchObject({ name: 'DamageError', slot: 2 })
  await expect(collect({ ...chain, verified: 7, keep: [] })).rejects.toMatchObject({ damage: 'slot-missing' })
  expect(store.objects.size).toBe(objects)
  expect(await collect({ ...chain, verified: 4, keep: [] })).toMatchObject({ dropped: [1, 2, 3] })
})

test('K-WHOLE-5 killed before or after any of its calls it leaves a valid chain, and the next one finishes', async () => {
  for (let killedAt = 0; ; killedAt++) {
    let calls = -1
    const { store, chain } = await five({
      at: () => {
        if (calls >= 0 && calls++ === killedAt) throw new Error('killed')
      },
    })
    calls = 0
    const killed = await collect({ ...chain, verified: 5, keep: [3] }).then(
      () => false,
      () => true,
    )
    calls = -1
    for (const slot of [3, 5]) await verify(chain, await readManifest(chain, slot))
    await collect({ ...chain, verified: 5, keep: [3] })
    expect(store.objects.size).toBe(6 + 1)
    for (const slot of [3, 5]) await verify(chain, await readManifest(chain, slot))
    if (!killed) break
  }
})

test('a whole job is removed, another one is not touched, and again is no error', async () => {
  const { store, chain } = await five()
  const other = chainOn(store, 'job2')
  await saveBytes(other, { token: 1, slot: 1, parent: null }, { graph: noise(10, 'x') })
  await removeJob(chain)
  await removeJob(chain)
  expect([...store.records.keys()]).toEqual(['job2/1'])
  await verify(other, await readManifest(other, 1))
})
