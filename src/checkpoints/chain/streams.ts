import { zstdDecompressSync } from 'node:zlib'
import { DamageError } from '../errors.ts'
import { digests } from './digest.ts'
import {
  chunkBytes,
  chunksOf,
  indexEntryBytes,
  indexSegmentBytes,
  kinds,
  readEntry,
  type ChunkEntry,
} from './format.ts'
import type { Chain, Manifest, StreamPiece } from './model.ts'
import { readIndexSegment } from './read.ts'

const nothing = Buffer.alloc(0)

/** So many chunks are read, verified and handed on together: 4 MiB. Two such pieces are in memory at a time. */
const chunksAPiece = 64

/** A piece that is to be read: chunks of one stream, one after the other, described by one part of the index. */
interface Part {
  readonly stream: string
  /** the first chunk's number in its stream */
  readonly first: number
  readonly bytes: number
  readonly index: Buffer
  /** where its entries begin in `index` */
  readonly at: number
}

/**
 * All streams of a checkpoint, in order, in pieces of at most 4 MiB, each verified before it is handed on; while one is
 * used the next is read. A stream of no bytes has no pieces. Throws `DamageError`; what came before it was right.
 */
export async function* openStreams(
  chain: Chain,
  manifest: Manifest,
  wanted: (stream: string) => boolean = () => true,
): AsyncGenerator<StreamPiece> {
  const longest = Math.min(chunksAPiece * chunkBytes, Math.max(0, ...manifest.streams.map(({ bytes }) => bytes)))
  const buffers = [Buffer.allocUnsafeSlow(longest), Buffer.allocUnsafeSlow(longest)]
  let turn = 0
  let ahead: Promise<StreamPiece> | null = null
  try {
    for await (const part of parts(chain, manifest, wanted)) {
      const piece = readPart(chain, manifest, part, buffers[turn++ % 2] as Buffer)
      // an early end by the one who reads leaves it unawaited
      piece.catch(() => {})
      if (ahead) yield await ahead
      ahead = piece
    }
    if (ahead) yield await ahead
    ahead = null
  } finally {
    await ahead?.catch(() => {})
  }
}

async function* parts(chain: Chain, manifest: Manifest, wanted: (stream: string) => boolean): AsyncGenerator<Part> {
  let entry = 0
  let segment = -1
  let index: Buffer = Buffer.alloc(0)
  const perSegment = indexSegmentBytes / indexEntryBytes
  for (const stream of manifest.streams) {
    const chunks = chunksOf(stream.bytes)
    if (!wanted(stream.name)) {
      entry += chunks
      continue
    }
    for (let first = 0; first < chunks;) {
      if (Math.floor(entry / perSegment) !== segment) {
        segment = Math.floor(entry / perSegment)
        index = await readIndexSegment(chain, manifest, segment)
      }
      const inSegment = entry % perSegment
      const count = Math.min(chunksAPiece, chunks - first, perSegment - inSegment)
      const bytes = Math.min(count * chunkBytes, stream.bytes - first * chunkBytes)
      yield { stream: stream.name, first, bytes, index, at: inSegment * indexEntryBytes }
      first += count
      entry += count
    }
  }
}

/** Chunks that lie one after the other in one pack are read together. */
interface Run {
  readonly pack: number
  readonly offset: number
  length: number
  readonly chunks: { readonly chunk: number; readonly entry: ChunkEntry; readonly at: number }[]
}

const readPart = async (chain: Chain, manifest: Manifest, part: Part, into: Buffer): Promise<StreamPiece> => {
  const damaged = (damage: 'index-damaged' | 'pack-missing' | 'pack-truncated' | 'chunk-damaged', what: string) =>
    new DamageError(damage, chain.jobId, manifest.slot, what)
  const runs: Run[] = []
  for (let chunk = 0; chunk * chunkBytes < part.bytes; chunk++) {
    const at = part.at + chunk * indexEntryBytes
    const entry = readEntry(part.index, at)
    const length = lengthOf(part, chunk)
    if (!entry || (entry.kind === kinds.raw && entry.stored !== length))
      throw damaged('index-damaged', `entry ${part.first + chunk} of ${part.stream} in its index is none`)
    if (entry.kind === kinds.zeros) {
      into.fill(0, chunk * chunkBytes, chunk * chunkBytes + length)
      continue
    }
    const pack = manifest.packs[entry.pack]
    if (!pack)
      throw damaged('index-damaged', `chunk ${part.first + chunk} of ${part.stream} lies in no pack that it names`)
    if (entry.offset + entry.stored > pack.bytes)
      throw damaged(
        'index-damaged',
        `chunk ${part.first + chunk} of ${part.stream} would lie behind the end of ${pack.key}`,
      )
    const last = runs.at(-1)
    if (last && last.pack === entry.pack && last.offset + last.length === entry.offset) {
      last.chunks.push({ chunk, entry, at })
      last.length += entry.stored
    } else runs.push({ pack: entry.pack, offset: entry.offset, length: entry.stored, chunks: [{ chunk, entry, at }] })
  }

  const readRun = async ({ pack, offset, length, chunks }: Run): Promise<void> => {
    const { key } = manifest.packs[pack] as { key: string }
    const read = await chain.store.read(key, { offset, length })
    if (!read) throw damaged('pack-missing', `its pack ${key} is not there`)
    if (read.length !== length)
      throw damaged(
        'pack-truncated',
        `its pack ${key} is cut off at ${offset + read.length}: ${length} bytes were to follow ${offset}`,
      )
    const bytes = Buffer.from(read.buffer, read.byteOffset, read.byteLength)
    const plains = chunks.map(({ chunk, entry }) => {
      const stored = bytes.subarray(entry.offset - offset, entry.offset - offset + entry.stored)
      return entry.kind === kinds.raw ? stored : decompress(stored, lengthOf(part, chunk))
    })
    const hashes = await digests(plains.map((plain) => plain ?? nothing))
    for (const [i, { chunk, entry, at }] of chunks.entries()) {
      const plain = plains[i]
      if (plain?.length !== lengthOf(part, chunk) || !hashes[i]?.equals(part.index.subarray(at, at + 32)))
        throw damaged(
          'chunk-damaged',
          `chunk ${part.first + chunk} of ${part.stream} is damaged, in ${key} at ${entry.offset}: it does not have its hash`,
        )
      plain.copy(into, chunk * chunkBytes)
    }
  }
  // a piece taken over from many saves has many runs: read a few at a time
  for (let i = 0; i < runs.length; i += 8) await Promise.all(runs.slice(i, i + 8).map(readRun))
  return { stream: part.stream, offset: part.first * chunkBytes, bytes: into.subarray(0, part.bytes) }
}

const lengthOf = (part: Part, chunk: number): number => Math.min(chunkBytes, part.bytes - chunk * chunkBytes)

/** Null: it is not a frame, or one that would grow beyond its length. */
const decompress = (stored: Buffer, length: number): Buffer | null => {
  try {
    return zstdDecompressSync(stored, { maxOutputLength: length, chunkSize: chunkBytes })
  } catch {
    return null
  }
}
