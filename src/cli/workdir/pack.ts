import { createHash } from 'node:crypto'
import type { Entry } from './list.ts'

export interface Packed {
  /** sha256 of `bytes`, hex: its name at the control plane */
  readonly sha256: string
  /** a gzipped tar */
  readonly bytes: Uint8Array
}

/**
 * Packs the entries into an archive. The same content gives the same bytes: sorted, times of change and permissions kept
 * (a build tool at the other end needs the times), owners, inodes and the packing machine left out.
 */
export const packWorkdir = async (directory: string, entries: readonly Entry[]): Promise<Packed> => {
  const { Pack } = await import('../tar.ts')
  const pack = new Pack({
    cwd: directory,
    portable: true,
    preservePaths: true,
    noDirRecurse: true,
    strict: true,
    jobs: 1,
    gzip: { level: 1 },
  })
  const chunks: Buffer[] = []
  const hash = createHash('sha256')
  pack.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    hash.update(chunk)
  })
  const finished = new Promise<void>((resolve, reject) => {
    pack.on('end', () => resolve())
    pack.on('error', reject)
  })
  for (const { path } of entries) pack.write(path)
  pack.end()
  await finished
  return { sha256: hash.digest('hex'), bytes: Buffer.concat(chunks) }
}
