/** Streams are cut into chunks of this length, the last one of a stream shorter. */
export const chunkBytes = 64 << 10
export const indexEntryBytes = 48
/** The index is hashed in parts, so that a restore holds one at a time; a part stands for 1 GiB of state. */
export const indexSegmentBytes = 16_384 * indexEntryBytes

export const chunksOf = (bytes: number): number => Math.ceil(bytes / chunkBytes)

/** How a chunk lies in its pack. */
export const kinds = { zeros: 0, raw: 1, zstd: 2 } as const
export type Kind = (typeof kinds)[keyof typeof kinds]

/** Where a chunk is. `pack` is a place in the manifest's `packs`; zeros lie nowhere. */
export interface ChunkEntry {
  readonly kind: Kind
  readonly pack: number
  readonly offset: number
  /** its length in the pack */
  readonly stored: number
}

/**
 * One entry of the index, little endian: sha256 of the chunk (32; zeros where there is nothing but zeros) · kind (1) ·
 * 0 (1) · pack (2) · stored length (4) · offset (8).
 */
export const writeEntry = (index: Buffer, at: number, entry: ChunkEntry): void => {
  index.writeUInt8(entry.kind, at + 32)
  index.writeUInt8(0, at + 33)
  index.writeUInt16LE(entry.pack, at + 34)
  index.writeUInt32LE(entry.stored, at + 36)
  index.writeUInt32LE(entry.offset % 2 ** 32, at + 40)
  index.writeUInt32LE(Math.floor(entry.offset / 2 ** 32), at + 44)
}

/** Null: it is not an entry that a writer makes. */
export const readEntry = (index: Buffer, at: number): ChunkEntry | null => {
  const kind = index.readUInt8(at + 32)
  const stored = index.readUInt32LE(at + 36)
  const offset = index.readUInt32LE(at + 40) + index.readUInt32LE(at + 44) * 2 ** 32
  if (kind > kinds.zstd || stored > chunkBytes || offset > Number.MAX_SAFE_INTEGER) return null
  return { kind: kind as Kind, pack: index.readUInt16LE(at + 34), offset, stored }
}
