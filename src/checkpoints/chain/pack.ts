import { constants, zstdCompressSync } from 'node:zlib'
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
  /**
   * Appends chunks, and says where they lie. Their bytes are copied or compressed before it returns. `packNumber` is asked
   * only where there are any.
   */
  add(chunks: readonly Buffer[], packNumber: () => number): Promise<readonly ChunkEntry[]>
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

  /** Null: it is kept as it is. */
  const compressed = (chunk: Buffer): Buffer | null => {
    if (untilSample-- === 0) {
      shrinks = sampleShrinks(chunk)
      untilSample = chunksASample - 1
    }
    if (!shrinks) return null
    // in the thread pool, with a compressor for each of many chunks at once, the same took four times the CPU
    const packed = zstdCompressSync(chunk, chunkOptions)
    if (packed.length < chunk.length * worthwhile) return packed
    // it was another kind of bytes than its neighbours: look again
    untilSample = 0
    return null
  }

  return {
    key,
    add: async (chunks, packNumber) => {
      const entries: ChunkEntry[] = []
      for (const chunk of chunks) {
        const packed = compressed(chunk)
        const stored = packed ?? chunk
        if (filled + stored.length > filling.length) await flush()
        stored.copy(filling, filled)
        filled += stored.length
        const kind = packed ? kinds.zstd : kinds.raw
        entries.push({ kind, pack: packNumber(), offset: length, stored: stored.length })
        length += stored.length
      }
      return entries
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
