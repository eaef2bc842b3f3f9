import { chunkBytes } from './format.ts'
import type { StreamWriter } from './model.ts'
import { chunksABatch, zeros, type Chunk, type ChunkSink } from './sink.ts'

/** What a stream needs of the save that it belongs to. */
export interface StreamPlace {
  readonly sink: ChunkSink
  /** Does it while the save is whole and the stream is the one that is open; what it throws ends the save. */
  whole<T>(act: () => Promise<T>): Promise<T>
  ended(bytes: number): void
}

export const streamWriter = (name: string, { sink, whole, ended }: StreamPlace): StreamWriter => {
  let bytes = 0
  let rest: Buffer | null = null
  let restLength = 0
  let short = false
  const add = (...chunks: readonly Buffer[]) =>
    sink.add(
      chunks.map((chunk) => ({ bytes: chunk, declared: null })),
      name,
    )

  const write = async (more: Uint8Array): Promise<void> => {
    let left = bufferOf(more)
    bytes += left.length
    while (left.length > 0) {
      if (restLength === 0 && left.length >= chunkBytes) {
        const count = Math.min(chunksABatch, Math.floor(left.length / chunkBytes))
        await add(...Array.from({ length: count }, (_, i) => left.subarray(i * chunkBytes, (i + 1) * chunkBytes)))
        left = left.subarray(count * chunkBytes)
        continue
      }
      rest ??= Buffer.allocUnsafeSlow(chunkBytes)
      const copied = left.copy(rest, restLength)
      restLength += copied
      left = left.subarray(copied)
      if (restLength < chunkBytes) continue
      restLength = 0
      await add(rest)
    }
  }

  const chunks = async (
    payload: Uint8Array,
    lengths: readonly number[],
    sha256: readonly (string | null)[],
  ): Promise<void> => {
    if (restLength > 0) throw new RangeError('whole chunks cannot follow a part of one')
    if (lengths.length !== sha256.length) throw new RangeError('not one hash for each chunk')
    const all = bufferOf(payload)
    const batch: Chunk[] = []
    let at = 0
    for (const [i, length] of lengths.entries()) {
      if (!Number.isInteger(length) || length < 1 || length > chunkBytes)
        throw new RangeError(`a chunk has 1 to ${chunkBytes} bytes, not ${length}`)
      if (short) throw new RangeError('only the last chunk of a stream may be short')
      short = length < chunkBytes
      const declared = sha256[i] ?? null
      if (declared === null) batch.push({ bytes: zeros.subarray(0, length), declared })
      else {
        if (at + length > all.length) throw new RangeError('fewer bytes than the chunks have together')
        batch.push({ bytes: all.subarray(at, at + length), declared })
        at += length
      }
      bytes += length
    }
    if (at !== all.length) throw new RangeError('more bytes than the chunks have together')
    await sink.add(batch, name)
  }

  return {
    write: (more) => whole(() => write(more)),
    chunks: (payload, lengths, sha256) => whole(() => chunks(payload, lengths, sha256)),
    end: () =>
      whole(async () => {
        if (rest && restLength > 0) await add(rest.subarray(0, restLength))
        ended(bytes)
        return bytes
      }),
  }
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
