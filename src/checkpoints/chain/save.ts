import { hash, randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { ChainGapError, CommitUnknownError, DamageError, HashMismatch, StoreError } from '../errors.ts'
import { saveFolder } from '../keys.ts'
import type { ObjectWriter } from '../port.ts'
import { chunkBytes, indexEntryBytes, indexSegmentBytes, kinds, writeEntry } from './format.ts'
import { knownChunks } from './known.ts'
import type { Committed, Fenced, Manifest, SaveMeta, SavePlan, SaveWriter, StreamWriter } from './model.ts'
import { packWriter } from './pack.ts'
import { readManifest, readRecord } from './read.ts'
import { encodeRecord, streamName } from './record.ts'

const zeros = Buffer.alloc(chunkBytes)
const zeroHash = Buffer.alloc(32)
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
  let index: Buffer = Buffer.allocUnsafeSlow(1024 * indexEntryBytes)
  let indexed = 0
  const streams: { name: string; bytes: number }[] = []
  let current: string | null = null
  let broken: unknown = null
  /** `unknown`: the slot may have been taken by this save, so what it wrote is not removed any more */
  let state: 'writing' | 'durable' | 'unknown' | 'over' = 'writing'
  let encoded: { readonly manifest: Manifest; readonly bytes: Buffer } | null = null

  const enter = (): number => {
    if (indexed + indexEntryBytes > index.length) {
      const larger = Buffer.allocUnsafeSlow(index.length * 2)
      index.copy(larger)
      index = larger
    }
    indexed += indexEntryBytes
    return indexed - indexEntryBytes
  }

  const addChunk = async (chunk: Buffer, declared: string | null): Promise<void> => {
    const at = enter()
    if (isZeros(chunk)) {
      if (declared !== null && declared !== hash('sha256', chunk)) throw mismatch()
      zeroHash.copy(index, at)
      writeEntry(index, at, { kind: kinds.zeros, pack: 0, offset: 0, stored: 0 })
      return
    }
    const sha256 = hash('sha256', chunk, 'buffer')
    if (declared !== null && declared !== sha256.toString('hex')) throw mismatch()
    let entry = known.find(sha256, chunk.length)
    if (!entry) {
      entry = await pack.add(chunk, packOf(packKey, 0))
      known.add(sha256, chunk.length, entry)
    }
    sha256.copy(index, at)
    writeEntry(index, at, entry)
  }
  const mismatch = () =>
    new HashMismatch(
      `a chunk of ${current ?? 'a stream'} does not have the hash that it was sent with: it changed on the way`,
    )

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
    let bytes = 0
    let rest: Buffer | null = null
    let restLength = 0
    let short = false
    const inOrder = () => {
      if (current !== name) throw new Error(`the stream ${name} has ended`)
    }
    return {
      write: (more) =>
        whole(async () => {
          inOrder()
          let left = Buffer.from(more.buffer, more.byteOffset, more.byteLength)
          bytes += left.length
          while (left.length > 0) {
            if (restLength === 0 && left.length >= chunkBytes) {
              await addChunk(left.subarray(0, chunkBytes), null)
              left = left.subarray(chunkBytes)
              continue
            }
            rest ??= Buffer.allocUnsafeSlow(chunkBytes)
            const copied = left.copy(rest, restLength)
            restLength += copied
            left = left.subarray(copied)
            if (restLength < chunkBytes) continue
            restLength = 0
            await addChunk(rest, null)
          }
        }),
      chunks: (payload, lengths, sha256) =>
        whole(async () => {
          inOrder()
          if (restLength > 0) throw new RangeError('whole chunks cannot follow a part of one')
          if (lengths.length !== sha256.length) throw new RangeError('not one hash for each chunk')
          const all = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
          let at = 0
          for (const [i, length] of lengths.entries()) {
            if (!Number.isInteger(length) || length < 1 || length > chunkBytes)
              throw new RangeError(`a chunk has 1 to ${chunkBytes} bytes, not ${length}`)
            if (short) throw new RangeError('only the last chunk of a stream may be short')
            short = length < chunkBytes
            const declared = sha256[i] ?? null
            if (declared === null) await addChunk(zeros.subarray(0, length), null)
            else {
              if (at + length > all.length) throw new RangeError('fewer bytes than the chunks have together')
              await addChunk(all.subarray(at, at + length), declared)
              at += length
            }
            bytes += length
          }
          if (at !== all.length) throw new RangeError('more bytes than the chunks have together')
        }),
      end: () =>
        whole(async () => {
          inOrder()
          if (rest && restLength > 0) await addChunk(rest.subarray(0, restLength), null)
          current = null
          streams.push({ name, bytes })
          return bytes
        }),
    }
  }

  const makeDurable = async (): Promise<number> => {
    const storedBytes = await pack.close()
    const own = packs.find((named) => named.key === packKey)
    if (own) own.bytes = storedBytes
    const object: ObjectWriter = await store.create(indexKey)
    for (let at = 0; at < indexed; at += indexSegmentBytes)
      await object.write(index.subarray(at, Math.min(at + indexSegmentBytes, indexed)))
    await object.close()
    return storedBytes
  }

  const manifestOf = (meta: SaveMeta, storedBytes: number): Manifest => {
    const hashes: string[] = []
    for (let at = 0; at < indexed; at += indexSegmentBytes)
      hashes.push(hash('sha256', index.subarray(at, Math.min(at + indexSegmentBytes, indexed))))
    return {
      is: 'manifest',
      job: jobId,
      slot,
      parent: plan.parent,
      token,
      ...meta,
      streams,
      index: { key: indexKey, bytes: indexed, hashes },
      packs,
      bytes: streams.reduce((sum, { bytes }) => sum + bytes, 0),
      storedBytes: storedBytes + indexed,
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

const isZeros = (chunk: Buffer): boolean =>
  chunk[0] === 0 &&
  chunk[chunk.length - 1] === 0 &&
  (chunk.length === chunkBytes ? chunk.equals(zeros) : chunk.equals(zeros.subarray(0, chunk.length)))
