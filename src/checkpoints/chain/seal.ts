import { ChainGapError, DamageError } from '../errors.ts'
import type { Chain, Manifest, Sealed } from './model.ts'
import { readRecord, verify } from './read.ts'
import { encodeRecord } from './record.ts'

/** Whoever finds so many foreign records behind the one it knew has the wrong store, or is attacked. */
const mostAdopted = 10_000

/**
 * Closes a chain behind `after`, so that whoever wrote it last can write nothing more: takes the next slot as a seal. A
 * manifest that is there already is verified and adopted, and the next slot is sealed; the last one adopted is the base,
 * else the one before `after` stays it. The same seal once more is the same. Throws `StoreError` if the store did not
 * answer; then nothing is known, and it is repeated.
 */
export const seal = async (chain: Chain & { readonly after: number; readonly by: string }): Promise<Sealed> => {
  const { store, jobId, key, after, by } = chain
  const adopted: Manifest[] = []
  const damaged: DamageError[] = []
  if (after > 0 && !(await store.readSlot(jobId, after)))
    throw new ChainGapError(
      `the chain of ${jobId} cannot be sealed behind slot ${after}, which is not taken: has the store gone back?`,
    )
  for (let slot = after + 1; slot <= after + mostAdopted; slot++) {
    const answer = await store.createSlot(jobId, slot, encodeRecord({ is: 'seal', job: jobId, slot, by }, key))
    if (answer === 'won') return { sealedSlot: slot, adopted, damaged }
    // mine, from before: it only closes the chain if nothing came behind it
    if (answer === 'mine') {
      if (!(await store.readSlot(jobId, slot + 1))) return { sealedSlot: slot, adopted, damaged }
      continue
    }
    try {
      const record = await readRecord(chain, slot)
      if (record?.is !== 'manifest') continue
      await verify(chain, record)
      adopted.push(record)
    } catch (error) {
      if (!(error instanceof DamageError)) throw error
      damaged.push(error)
    }
  }
  throw new ChainGapError(
    `${mostAdopted} slots behind ${jobId}/${after} are taken: this is not the chain that was meant`,
  )
}
