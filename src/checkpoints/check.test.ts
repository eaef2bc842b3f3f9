import { expect, test } from 'vitest'
import { checkStore } from './check.ts'
import { memoryStore } from './memory/index.ts'
import type { CheckpointStore } from './port.ts'

test('a store that holds is told so, and nothing is left in it', async () => {
  const store = memoryStore()
  expect(await checkStore(store)).toBeNull()
  expect(store.records.size).toBe(0)
})

test('a store that overwrites in silence is found out', async () => {
  const store = memoryStore()
  const overwriting: CheckpointStore = {
    ...store,
    createSlot: async (job, slot, bytes) => {
      store.records.set(`${job}/${slot}`, Uint8Array.from(bytes))
      return 'won'
    },
  }
  expect(await checkStore(overwriting)).toContain('16 were told')
  const mixing: CheckpointStore = { ...store, readSlot: async () => Buffer.from('writer') }
  expect(await checkStore(mixing)).toContain('not what its winner wrote')
  let asked = 0
  const forgetful: CheckpointStore = {
    ...store,
    createSlot: async (...slot) => (++asked > 16 ? 'taken' : await store.createSlot(...slot)),
  }
  expect(await checkStore(forgetful)).toContain('not told that the slot is its own')
})
