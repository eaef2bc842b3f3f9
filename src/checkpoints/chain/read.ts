import { hash } from 'node:crypto'
import { DamageError } from '../errors.ts'
import { indexSegmentBytes } from './format.ts'
import type { Chain, Manifest, Newest, SlotRecord } from './model.ts'
import { decodeRecord } from './record.ts'
import { openStreams } from './streams.ts'

/** What a slot holds, authenticated; null: it is free. Throws `DamageError`. */
export const readRecord = async (chain: Chain, slot: number): Promise<SlotRecord | null> => {
  const bytes = await chain.store.readSlot(chain.jobId, slot)
  return bytes && decodeRecord(bytes, chain, slot)
}

/**
 * The manifest in a slot, authenticated and checked in itself. Its chunks are looked at by `verify`, and again by
 * `openStreams` as they are read. Throws `DamageError`, which says what is there instead.
 */
export const readManifest = async (chain: Chain, slot: number): Promise<Manifest> => {
  const record = await readRecord(chain, slot)
  if (record?.is === 'manifest') return record
  const { jobId } = chain
  if (!record) throw new DamageError('slot-missing', jobId, slot, 'there is no checkpoint in this slot')
  if (record.is === 'seal')
    throw new DamageError('slot-sealed', jobId, slot, `this slot is a seal (${record.by}), not a checkpoint`)
  throw new DamageError('slot-dropped', jobId, slot, 'this checkpoint was dropped when a later one was verified')
}

/** Reads every chunk and compares every hash and length. Throws `DamageError` at the first that is wrong. */
export const verify = async (chain: Chain, manifest: Manifest): Promise<void> => {
  // eslint-disable-next-line no-unused-vars
  for await (const _ of openStreams(chain, manifest)) continue
}

/** The newest manifest of a chain that is authentic, and what is wrong with newer slots. */
export const newestManifest = async (chain: Chain): Promise<Newest> => {
  const slots = await chain.store.slots(chain.jobId)
  const damaged: DamageError[] = []
  for (const slot of slots.toReversed()) {
    try {
      const record = await readRecord(chain, slot)
      if (record?.is === 'manifest') return { manifest: record, lastSlot: slots.at(-1) ?? 0, damaged }
    } catch (error) {
      if (!(error instanceof DamageError)) throw error
      damaged.push(error)
    }
  }
  return { manifest: null, lastSlot: slots.at(-1) ?? 0, damaged }
}

/** One part of the index, its hash compared. Throws `DamageError`. */
export const readIndexSegment = async (chain: Chain, manifest: Manifest, segment: number): Promise<Buffer> => {
  const { index, slot } = manifest
  const offset = segment * indexSegmentBytes
  const length = Math.min(indexSegmentBytes, index.bytes - offset)
  const bytes = await chain.store.read(index.key, { offset, length })
  if (!bytes) throw new DamageError('index-missing', chain.jobId, slot, `its index ${index.key} is not there`)
  const wrong =
    bytes.length === length
      ? hash('sha256', bytes) === index.hashes[segment]
        ? null
        : 'does not have its hash'
      : `is cut off: ${bytes.length} of ${length} bytes`
  if (wrong)
    throw new DamageError('index-damaged', chain.jobId, slot, `part ${segment + 1} of its index ${index.key} ${wrong}`)
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
