import { HashMismatch } from '../errors.ts'
import { digests } from './digest.ts'
import { chunkBytes, indexEntryBytes, kinds, writeEntry, type ChunkEntry } from './format.ts'
import type { KnownChunks } from './known.ts'
import type { PackWriter } from './pack.ts'

export const zeros = Buffer.alloc(chunkBytes)
const zeroHash = Buffer.alloc(32)

/** Chunks are taken in together, so many at a time: 4 MiB. */
export const chunksABatch = 64

export interface Chunk {
  readonly bytes: Buffer
  /** the hash that its sender made, hex; null: nobody did */
  readonly declared: string | null
}

/** Where the chunks of a save go: zeros nowhere, known ones to where they are, the rest into the pack; all into the index. */
export interface ChunkSink {
  /** Takes chunks in, in order, and is done with their bytes when it returns. Throws `HashMismatch`, `StoreError`. */
  add(chunks: readonly Chunk[], stream: string): Promise<void>
  /** the index so far */
  index(): Buffer
}

export const chunkSink = (known: KnownChunks, pack: PackWriter, packNumber: () => number): ChunkSink => {
  let index: Buffer = Buffer.allocUnsafeSlow(1024 * indexEntryBytes)
  let indexed = 0

  const enter = (sha256: Buffer, entry: ChunkEntry): void => {
    if (indexed + indexEntryBytes > index.length) {
      const larger = Buffer.allocUnsafeSlow(index.length * 2)
      index.copy(larger)
      index = larger
    }
    sha256.copy(index, indexed)
    writeEntry(index, indexed, entry)
    indexed += indexEntryBytes
  }

  return {
    index: () => index.subarray(0, indexed),
    add: async (chunks, stream) => {
      const isZero = chunks.map(({ bytes }) => isZeros(bytes))
      // of zeros without a declared hash there is nothing to compare
      const hashed = chunks.filter(({ declared }, i) => !isZero[i] || declared !== null)
      const sha256 = await digests(hashed.map(({ bytes }) => bytes))
      const hashes = new Map(hashed.map((chunk, i) => [chunk, sha256[i] as Buffer]))
      for (const [chunk, hash] of hashes)
        if (chunk.declared !== null && chunk.declared !== hash.toString('hex'))
          throw new HashMismatch(
            `a chunk of ${stream} does not have the hash that it was sent with: it changed on the way`,
          )
      const fresh = new Map<string, { readonly bytes: Buffer; readonly sha256: Buffer }>()
      for (const [i, chunk] of chunks.entries()) {
        const hash = hashes.get(chunk)
        if (hash && !isZero[i] && !known.find(hash, chunk.bytes.length))
          fresh.set(hash.toString('latin1'), { bytes: chunk.bytes, sha256: hash })
      }
      const stored = await pack.add(
        [...fresh.values()].map(({ bytes }) => bytes),
        packNumber,
      )
      for (const [i, { bytes, sha256 }] of [...fresh.values()].entries())
        known.add(sha256, bytes.length, stored[i] as ChunkEntry)
      const added = new Map([...fresh.keys()].map((key, i) => [key, stored[i] as ChunkEntry]))
      for (const [i, chunk] of chunks.entries()) {
        const hash = hashes.get(chunk)
        if (isZero[i] || !hash) {
          enter(zeroHash, { kind: kinds.zeros, pack: 0, offset: 0, stored: 0 })
          continue
        }
        // what was added just now is known too, unless there is no more room for what is known
        const entry = added.get(hash.toString('latin1')) ?? known.find(hash, chunk.bytes.length)
        if (!entry) throw new Error('a chunk that was known is known no more')
        enter(hash, entry)
      }
    },
  }
}

const isZeros = (chunk: Buffer): boolean =>
  chunk[0] === 0 &&
  chunk[chunk.length - 1] === 0 &&
  (chunk.length === chunkBytes ? chunk.equals(zeros) : chunk.equals(zeros.subarray(0, chunk.length)))
