import { hash, randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { ChainGapError, CommitUnknownError, DamageError, StoreError } from '../errors.ts'
import { saveFolder } from '../keys.ts'
import type { ObjectWriter } from '../port.ts'
import { indexSegmentBytes } from './format.ts'
import { knownChunks } from './known.ts'
import type { Committed, Fenced, Manifest, SaveMeta, SavePlan, SaveWriter, StreamWriter } from './model.ts'
import { packWriter } from './pack.ts'
import { readManifest, readRecord } from './read.ts'
import { encodeRecord, streamName } from './record.ts'
import { chunkSink } from './sink.ts'
import { streamWriter } from './stream-writer.ts'

/** How often, and how far apart, the taking of a slot is tried again where the store did not answer for certain. */
const retries_ms = [50, 450]

/**
 * Begins a save into a slot. `fenced` at once where somebody has the slot; else a writer: streams one after the other,
 * then `commit`. Packs and index are durable before the slot is taken by create-if-absent, so a save that ends anywhere
 * before that leaves nothing that counts. Throws `ChainGapError` where the slot before is free, and `StoreError`.
 */
export const beginSave = async (plan: SavePlan): Promise<SaveWriter | Fenced> => {
  const { store, jobId, token, slot } = plan
  const taken = await store.slots(jobId)
  if (taken.includes(slot)) return await fencedBy(plan)
  if (slot > 1 && !taken.includes(slot - 1))
    throw new ChainGapError(
      `slot ${slot} of ${jobId} cannot be written: slot ${slot - 1} is not taken. Has the store gone back?`,
    )
  const folder = saveFolder(jobId, slot, token, randomBytes(8).toString('hex'))
  return await saveWriter(plan, folder, await reusable(plan))
}

/**
 * The manifest whose chunks may be taken over: the parent, while nothing but seals lies between it and the slot. Then it
 * is the newest of the chain, which no collector drops before this slot is taken.
 */
const reusable = async (plan: SavePlan): Promise<Manifest | null> => {
  if (plan.parent === null) return null
  try {
    for (let between = plan.parent + 1; between < plan.slot; between++)
      if ((await readRecord(plan, between))?.is !== 'seal') return null
    return await readManifest(plan, plan.parent)
  } catch (error) {
    if (error instanceof DamageError) return null
    throw error
  }
}

const fencedBy = async (plan: SavePlan): Promise<Fenced> => {
  try {
    const record = await readRecord(plan, plan.slot)
    if (record?.is === 'manifest') return { is: 'fenced', by: { is: 'manifest', token: record.token } }
    return { is: 'fenced', by: { is: record?.is ?? 'unreadable' } }
  } catch (error) {
    if (error instanceof DamageError) return { is: 'fenced', by: { is: 'unreadable' } }
    throw error
  }
}

const saveWriter = async (plan: SavePlan, folder: string, parent: Manifest | null): Promise<SaveWriter> => {
  const { store, jobId, key, token, slot } = plan
  const packKey = `${folder}/pack`
  const indexKey = `${folder}/index`
  const packs: { key: string; bytes: number }[] = []
  const numbers = new Map<string, number>()
  const packOf = (key: string, bytes: number): number => {
    const there = numbers.get(key)
    if (there !== undefined) return there
    if (packs.length >= 65_535)
      throw new StoreError('io', `checkpoint ${jobId}/${slot} lies in more packs than can be named`)
    numbers.set(key, packs.length)
    return packs.push({ key, bytes }) - 1
  }
  let known
  try {
    known = await knownChunks(plan, parent, packOf)
  } catch (error) {
    if (!(error instanceof DamageError)) throw error
    known = await knownChunks(plan, null, packOf)
  }
  const pack = packWriter(store, packKey)
  const sink = chunkSink(known, pack, () => packOf(packKey, 0))
  const streams: { name: string; bytes: number }[] = []
  let current: string | null = null
  let broken: unknown = null
  /** `unknown`: the slot may have been taken by this save, so what it wrote is not removed any more */
  let state: 'writing' | 'durable' | 'unknown' | 'over' = 'writing'
  let encoded: { readonly manifest: Manifest; readonly bytes: Buffer } | null = null

  /** What fails once makes the save impossible: a stream with a hole must never be committed. */
  const whole = async <T>(act: () => Promise<T>): Promise<T> => {
    if (broken) throw broken
    if (state !== 'writing') throw new Error('the save is over: nothing can be added to it')
    try {
      return await act()
    } catch (error) {
      broken = error
      throw error
    }
  }

  const stream = (name: string): StreamWriter => {
    if (state !== 'writing' || broken) throw broken ?? new Error('the save is over: nothing can be added to it')
    if (current !== null) throw new Error(`the stream ${current} was not ended`)
    if (!streamName.test(name) || streams.some((other) => other.name === name))
      throw new RangeError(`not a name for a stream, or one that is used: ${JSON.stringify(name)}`)
    current = name
    return streamWriter(name, {
      sink,
      whole: (act) =>
        whole(async () => {
          if (current !== name) throw new Error(`the stream ${name} has ended`)
          return await act()
        }),
      ended: (bytes) => {
        current = null
        streams.push({ name, bytes })
      },
    })
  }

  const makeDurable = async (): Promise<number> => {
    const storedBytes = await pack.close()
    const own = packs.find((named) => named.key === packKey)
    if (own) own.bytes = storedBytes
    const object: ObjectWriter = await store.create(indexKey)
    for (const part of partsOf(sink.index())) await object.write(part)
    await object.close()
    return storedBytes
  }

  const manifestOf = (meta: SaveMeta, storedBytes: number): Manifest => {
    const index = sink.index()
    return {
      is: 'manifest',
      job: jobId,
      slot,
      parent: plan.parent,
      token,
      ...meta,
      streams,
      index: { key: indexKey, bytes: index.length, hashes: partsOf(index).map((part) => hash('sha256', part)) },
      packs,
      bytes: streams.reduce((sum, { bytes }) => sum + bytes, 0),
      storedBytes: storedBytes + index.length,
    }
  }

  const removeOwn = async (): Promise<void> => {
    await pack.abort()
    await store.remove(packKey)
    await store.remove(indexKey)
  }

  const takeSlot = async (bytes: Buffer): Promise<'won' | 'mine' | 'taken'> => {
    for (let i = 0; ; i++) {
      try {
        return await store.createSlot(jobId, slot, bytes)
      } catch (error) {
        state = 'unknown'
        const wait_ms = retries_ms[i]
        if (wait_ms === undefined)
          throw new CommitUnknownError(
            `whether slot ${slot} of ${jobId} was taken is not known: ${error instanceof Error ? error.message : String(error)}`,
            { cause: error },
          )
        await pause(wait_ms)
      }
    }
  }

  return {
    is: 'open',
    stream,
    commit: async (meta: SaveMeta): Promise<Committed | Fenced> => {
      if (broken) throw broken
      if (state === 'over') throw new Error('the save is over')
      if (current !== null) throw new Error(`the stream ${current} was not ended`)
      if (!encoded) {
        const storedBytes = await whole(makeDurable)
        const manifest = manifestOf(meta, storedBytes)
        encoded = await whole(async () => ({ manifest, bytes: encodeRecord(manifest, key) }))
        state = 'durable'
      }
      const { manifest } = encoded
      const answer = await takeSlot(encoded.bytes)
      const sure = state === 'durable'
      state = 'over'
      if (answer === 'taken') {
        // after an uncertain answer the slot may have been ours for a while, and its chunks be named by later ones
        if (sure) await removeOwn()
        return await fencedBy(plan)
      }
      return { is: 'committed', slot, bytes: manifest.bytes, storedBytes: manifest.storedBytes, manifest }
    },
    abort: async () => {
      if (state === 'over' || state === 'unknown') return
      state = 'over'
      await removeOwn()
    },
  }
}

const partsOf = (index: Buffer): readonly Buffer[] =>
  Array.from({ length: Math.ceil(index.length / indexSegmentBytes) }, (_, i) =>
    index.subarray(i * indexSegmentBytes, (i + 1) * indexSegmentBytes),
  )
