import { randomBytes } from 'node:crypto'
import type { CheckpointStore } from './port.ts'

const writers = 16

/**
 * Tries a store with what everything rests on: of 16 who create one slot at once, one wins, and what is read is his. Asked
 * when a store is added, and by `doctor`. Leaves nothing behind. Null: it holds; else why not, in one sentence. Throws
 * `StoreError` where the store cannot be used at all.
 */
export const checkStore = async (store: CheckpointStore): Promise<string | null> => {
  const job = `check-${randomBytes(8).toString('hex')}`
  try {
    const bytes = Array.from({ length: writers }, (_, i) => Buffer.from(`writer ${i}`))
    const answers = await Promise.all(bytes.map((each) => store.createSlot(job, 1, each)))
    const winners = answers.filter((answer) => answer === 'won').length
    if (winners !== 1)
      return `of ${writers} that took one slot at once ${winners} were told that they had it: two machines could go on with one job`
    const there = await store.readSlot(job, 1)
    const won = bytes[answers.indexOf('won')] as Buffer
    if (!there || !won.equals(there)) return 'what is read from a slot is not what its winner wrote'
    if ((await store.createSlot(job, 1, won)) !== 'mine')
      return 'a writer that asks again is not told that the slot is its own'
    return null
  } finally {
    await store.removeSlot(job, 1)
  }
}
