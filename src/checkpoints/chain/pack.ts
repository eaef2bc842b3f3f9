import { zstdCompressSync, constants } from 'node:zlib'
import type { CheckpointStore, ObjectWriter } from '../port.ts'
import { kinds, type ChunkEntry } from './format.ts'

/** Stored chunks are gathered to pieces of this length, since a write of 64 KiB costs more in calls than in bytes. */
const gatherBytes = 2 << 20
const firstBytes = 128 << 10
const sampleBytes = 16 << 10
/** A chunk is compressed only where its sample shrinks to this share. */
const worthwhile = 0.85
/** One sample decides for so many chunks (1 MiB): making a compressor costs as much as compressing the sample. */
const chunksASample = 16
const level1 = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
// room for the whole result at once: by default it is made in pieces of 16 KiB and joined
const sampleOptions = { ...level1, chunkSize: 20 << 10 }
const chunkOptions = { ...level1, chunkSize: 80 << 10 }

/** The one pack of a save: chunks one after the other, each raw or compressed by itself. */
export interface PackWriter {
  readonly key: string
  /** Appends a chunk. Its bytes are copied or compressed before this returns; it waits only where the disk is behind. */
  add(chunk: Buffer, pack: number): Promise<ChunkEntry>
  /** Makes it durable; says its length. 0: nothing was stored, and there is no such object. */
  close(): Promise<number>
  abort(): Promise<void>
}

export const packWriter = (store: CheckpointStore, key: string): PackWriter => {
  let object: ObjectWriter | null = null
  let length = 0
  // a small state needs no large buffer
  let filling: Buffer = Buffer.allocUnsafeSlow(firstBytes)
  let other: Buffer | null = null
  let filled = 0
  let writing: Promise<void> = Promise.resolve()
  let shrinks = false
  let untilSample = 0

  const flush = async (): Promise<void> => {
    if (filled === 0) return
    await writing
    object ??= await store.create(key)
    const full = filling.subarray(0, filled)
    writing = object.write(full)
    // it is awaited with the next piece; until then its failure is nobody's
    writing.catch(() => {})
    const next: Buffer = other ?? Buffer.allocUnsafeSlow(gatherBytes)
    other = filling.length === gatherBytes ? filling : null
    filling = next
    filled = 0
  }

  return {
    key,
    add: async (chunk, pack) => {
      if (untilSample-- === 0) {
        shrinks = sampleShrinks(chunk)
        untilSample = chunksASample - 1
      }
      const packed = shrinks ? compress(chunk) : null
      // it was another kind of bytes: look again
      if (shrinks && !packed) untilSample = 0
      const stored = packed ?? chunk
      if (filled + stored.length > filling.length) await flush()
      stored.copy(filling, filled)
      filled += stored.length
      const offset = length
      length += stored.length
      return { kind: packed ? kinds.zstd : kinds.raw, pack, offset, stored: stored.length }
    },
    close: async () => {
      await flush()
      await writing
      await object?.close()
      return length
    },
    abort: async () => {
      await writing.catch(() => {})
      await object?.abort()
    },
  }
}

const sampleShrinks = (chunk: Buffer): boolean => {
  const sample = chunk.subarray(0, sampleBytes)
  return zstdCompressSync(sample, sampleOptions).length < sample.length * worthwhile
}

/** Null: it does not shrink enough to be worth the time. */
const compress = (chunk: Buffer): Buffer | null => {
  const packed = zstdCompressSync(chunk, chunkOptions)
  return packed.length < chunk.length * worthwhile ? packed : null
}
