import { expect, test } from 'vitest'
import { memoryStore } from '../memory/index.ts'
import { readRecord } from './read.ts'
import { seal } from './seal.ts'
import { chainOn, noise, saveBytes } from './testing.ts'

const save = (chain: ReturnType<typeof chainOn>, slot: number, token = 1) =>
  saveBytes(chain, { token, slot, parent: slot > 1 ? slot - 1 : null }, { graph: noise(1000, `${slot}`) })

test('K-WHOLE-1 behind a seal the old writer is fenced', async () => {
  const chain = chainOn(memoryStore())
  await save(chain, 1)
  expect(await seal({ ...chain, after: 1, by: 'move-a' })).toEqual({ sealedSlot: 2, adopted: [], damaged: [] })
  expect(await readRecord(chain, 2)).toEqual({ is: 'seal', job: 'job', slot: 2, by: 'move-a' })
  expect(await save(chain, 2)).toMatchObject({ is: 'fenced' })
})

test('the same seal once more is the same', async () => {
  const chain = chainOn(memoryStore())
  await save(chain, 1)
  await seal({ ...chain, after: 1, by: 'move-a' })
  expect(await seal({ ...chain, after: 1, by: 'move-a' })).toEqual({ sealedSlot: 2, adopted: [], damaged: [] })
  expect(await chain.store.slots('job')).toEqual([1, 2])
})

test('a checkpoint that came before the seal is verified and adopted', async () => {
  const chain = chainOn(memoryStore())
  for (const slot of [1, 2, 3]) await save(chain, slot)
  expect(await seal({ ...chain, after: 1, by: 'move-a' })).toMatchObject({
    sealedSlot: 4,
    adopted: [{ slot: 2 }, { slot: 3 }],
    damaged: [],
  })
})

test('a seal behind which somebody wrote is made anew, behind him', async () => {
  const chain = chainOn(memoryStore())
  await save(chain, 1)
  await seal({ ...chain, after: 1, by: 'move-a' })
  await save(chain, 3)
  for (const by of ['move-a', 'move-b'])
    expect(await seal({ ...chain, after: 1, by })).toMatchObject({
      adopted: [{ slot: 3 }],
      sealedSlot: by === 'move-a' ? 4 : 5,
    })
})

test('K-WHOLE-2 what is damaged is never adopted, and the chain is sealed all the same', async () => {
  const store = memoryStore()
  const chain = chainOn(store)
  for (const slot of [1, 2, 3]) await save(chain, slot)
  for (const [key, bytes] of store.objects) if (key.includes('000002') && key.endsWith('pack')) bytes[500]! ^= 1
  store.records.set('job/3', Buffer.from('nonsense'))
  expect(await seal({ ...chain, after: 1, by: 'lost' })).toMatchObject({
    sealedSlot: 4,
    adopted: [],
    damaged: [{ damage: 'chunk-damaged' }, { damage: 'record-malformed' }],
  })
})

test('an empty chain is sealed at its first slot; one behind a free slot is not', async () => {
  const chain = chainOn(memoryStore())
  await expect(seal({ ...chain, after: 3, by: 'x' })).rejects.toMatchObject({ name: 'ChainGapError' })
  expect(await seal({ ...chain, after: 0, by: 'x' })).toMatchObject({ sealedSlot: 1 })
})
