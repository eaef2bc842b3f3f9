import { chunkBytes, indexEntryBytes, kinds, readEntry, type ChunkEntry } from './format.ts'
import type { Chain, Manifest } from './model.ts'
import { readIndexSegment } from './read.ts'

/** Chunks of so many entries (64 GiB) of a parent can be taken over; the rest of a larger one is written again. */
const mostEntries = 1 << 20
/** A pack of which less than this is still in use is not taken over any more, so that old packs come free. */
const leastUse = 0.25

/** Chunks that need not be written again, by hash: open addressing over the first four bytes of a hash that is even anyway. */
export interface KnownChunks {
  /** The entry of a chunk with this hash (32 bytes) and length; null: it has to be written. */
  find(sha256: Buffer, length: number): ChunkEntry | null
  add(sha256: Buffer, length: number, entry: ChunkEntry): void
}

/**
 * What a save may take over: the chunks of its parent, and what it has written itself. `packOf` gives the number under
 * which the new manifest names one of its parent's packs.
 */
export const knownChunks = async (
  chain: Chain,
  parent: Manifest | null,
  packOf: (key: string, bytes: number) => number,
): Promise<KnownChunks> => {
  let entries: Buffer = Buffer.allocUnsafeSlow(1024 * indexEntryBytes)
  const lengths: number[] = []
  let count = 0
  let table = new Uint32Array(4096)

  const place = (sha256: Buffer): number => {
    let at = sha256.readUInt32LE(0) & (table.length - 1)
    while (table[at] !== 0) {
      const start = ((table[at] as number) - 1) * indexEntryBytes
      if (sha256.compare(entries, start, start + 32) === 0) return at
      at = (at + 1) & (table.length - 1)
    }
    return at
  }
  const grow = () => {
    const larger = Buffer.allocUnsafeSlow(entries.length * 2)
    entries.copy(larger)
    entries = larger
  }
  const rehash = () => {
    table = new Uint32Array(table.length * 2)
    for (let i = 0; i < count; i++) {
      const start = i * indexEntryBytes
      table[place(entries.subarray(start, start + 32))] = i + 1
    }
  }
  const insert = (source: Buffer, at: number, length: number): void => {
    if (count >= 2 * mostEntries) return
    const hash = source.subarray(at, at + 32)
    const free = place(hash)
    if (table[free] !== 0) return
    if ((count + 1) * indexEntryBytes > entries.length) grow()
    source.copy(entries, count * indexEntryBytes, at, at + indexEntryBytes)
    lengths.push(length)
    table[free] = ++count
    if (count * 2 > table.length) rehash()
  }

  let inherited = 0
  if (parent) {
    const index = await wholeIndex(chain, parent)
    const usable = usablePacks(parent, index)
    let at = 0
    for (const stream of parent.streams)
      for (let left = stream.bytes; left > 0 && at < index.length; left -= chunkBytes, at += indexEntryBytes) {
        const entry = readEntry(index, at)
        if (entry && entry.kind !== kinds.zeros && usable[entry.pack]) insert(index, at, Math.min(left, chunkBytes))
      }
    inherited = count
  }
  const packs = parent?.packs ?? []
  const own = Buffer.alloc(indexEntryBytes)

  return {
    find: (sha256, length) => {
      const found = table[place(sha256)]
      if (!found || lengths[found - 1] !== length) return null
      const entry = readEntry(entries, (found - 1) * indexEntryBytes)
      if (!entry || found > inherited) return entry
      const pack = packs[entry.pack]
      return pack ? { ...entry, pack: packOf(pack.key, pack.bytes) } : null
    },
    add: (sha256, length, entry) => {
      sha256.copy(own)
      own.writeUInt8(entry.kind, 32)
      own.writeUInt16LE(entry.pack, 34)
      own.writeUInt32LE(entry.stored, 36)
      own.writeUInt32LE(entry.offset % 2 ** 32, 40)
      own.writeUInt32LE(Math.floor(entry.offset / 2 ** 32), 44)
      insert(own, 0, length)
    },
  }
}

const wholeIndex = async (chain: Chain, { index, ...rest }: Manifest): Promise<Buffer> => {
  const parts: Buffer[] = []
  for (let i = 0, read = 0; i < index.hashes.length && read < mostEntries * indexEntryBytes; i++) {
    const part = await readIndexSegment(chain, { index, ...rest }, i)
    parts.push(part)
    read += part.length
  }
  return Buffer.concat(parts)
}

const usablePacks = (parent: Manifest, index: Buffer): readonly boolean[] => {
  const used = new Float64Array(parent.packs.length)
  for (let at = 0; at < index.length; at += indexEntryBytes) {
    const entry = readEntry(index, at)
    if (entry && entry.kind !== kinds.zeros && entry.pack < used.length) used[entry.pack]! += entry.stored
  }
  return parent.packs.map(({ bytes }, i) => (used[i] as number) >= bytes * leastUse)
}
