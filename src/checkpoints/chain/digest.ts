import { hash, webcrypto } from 'node:crypto'

/** From so many bytes on, hashes are made by the thread pool: below, handing them over costs more than it saves. */
const worthThreads_bytes = 1 << 20

/** The sha256 of each, 32 bytes; together on several cores where there is enough to do. */
export const digests = async (chunks: readonly Buffer[]): Promise<readonly Buffer[]> => {
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  if (bytes < worthThreads_bytes) return chunks.map((chunk) => hash('sha256', chunk, 'buffer'))
  return await Promise.all(
    chunks.map(async (chunk) => Buffer.from(await webcrypto.subtle.digest('SHA-256', chunk as Buffer<ArrayBuffer>))),
  )
}
