import type { Instant } from '../../core/time/index.ts'
import type { DamageError } from '../errors.ts'
import type { CheckpointStore } from '../port.ts'

/** What JSON can say; integers only up to 2^53. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** One value of the state, for people and for refusals: the graph itself lies in the streams. */
export interface SavedValue {
  readonly path: string
  readonly kind: string
  readonly bytes: number
}

/** How the state is carried. */
export type Method = 'sdk' | 'files' | 'process'

/** One committed checkpoint. Everything in it is authenticated with the job's key. */
export interface Manifest {
  readonly is: 'manifest'
  readonly job: string
  readonly slot: number
  /** the slot of the manifest that this state goes on from; null: it began here */
  readonly parent: number | null
  /** the attempt that wrote it */
  readonly token: number
  readonly method: Method
  readonly savedAt: Instant
  readonly values: readonly SavedValue[]
  readonly environment: Json
  /** the digest of the values (K-WHOLE-3); null where the method has none */
  readonly digest: string | null
  /** in the order in which they are restored; chunks of 64 KiB, the last one of a stream shorter */
  readonly streams: readonly { readonly name: string; readonly bytes: number }[]
  /** the table of all chunks of all streams, in order; one hash for each 16,384 entries (1 GiB of state) */
  readonly index: { readonly key: string; readonly bytes: number; readonly hashes: readonly string[] }
  /** the objects in which its chunks lie, its own and earlier slots' */
  readonly packs: readonly { readonly key: string; readonly bytes: number }[]
  /** what all streams add up to */
  readonly bytes: number
  /** what this save wrote, beside what it took over from its parent */
  readonly storedBytes: number
  /** the SDK's own, opaque here */
  readonly meta: Json
  /** what the agent wants remembered with it: decisions that it took alone */
  readonly notes: Json
}

/** A mark in the chain: whoever meant to write this slot is fenced. */
export interface Seal {
  readonly is: 'seal'
  readonly job: string
  readonly slot: number
  /** what it was made for: a move's id, `lost ATTEMPT`. The same one twice is the same seal. */
  readonly by: string
}

/** What is left of a slot after its checkpoint was dropped: the slot stays taken. */
export interface Dropped {
  readonly is: 'dropped'
  readonly job: string
  readonly slot: number
}

export type SlotRecord = Manifest | Seal | Dropped

/** Where a job's chain is, and the key that its records are authenticated with (`jobKey`). */
export interface Chain {
  readonly store: CheckpointStore
  readonly jobId: string
  readonly key: Uint8Array
}

export interface SavePlan extends Chain {
  readonly token: number
  /** the slot to take: the one after the writer's last */
  readonly slot: number
  /** the manifest that this attempt last saved or was restored from; its chunks are taken over where they are equal */
  readonly parent: number | null
}

/** The slot belongs to someone else: this writer stops, and writes nothing more. */
export interface Fenced {
  readonly is: 'fenced'
  /** who holds the slot; the own token, where an earlier save of this attempt was committed and its answer lost */
  readonly by: { readonly is: 'manifest'; readonly token: number } | { readonly is: 'seal' | 'dropped' | 'unreadable' }
}

export interface Committed {
  readonly is: 'committed'
  readonly slot: number
  readonly bytes: number
  readonly storedBytes: number
  readonly manifest: Manifest
}

/** What stands in the manifest beside the streams. */
export interface SaveMeta {
  readonly method: Method
  readonly savedAt: Instant
  readonly values: readonly SavedValue[]
  readonly environment: Json
  readonly digest: string | null
  readonly meta: Json
  readonly notes: Json
}

export interface SaveWriter {
  readonly is: 'open'
  /** Opens the next stream, after the one before was ended. */
  stream(name: string): StreamWriter
  /** Makes packs and index durable, then takes the slot. Nothing is a checkpoint before this says `committed`. */
  commit(meta: SaveMeta): Promise<Committed | Fenced>
  /** Gives up and removes what was written. After a commit it does nothing. */
  abort(): Promise<void>
}

export interface StreamWriter {
  /** Bytes of any length; they are cut into chunks and hashed here. */
  write(bytes: Uint8Array): Promise<void>
  /**
   * Whole chunks one after the other, `lengths` each, with the hash that their sender made (null: zeros, no bytes).
   * Each is hashed again; one that differs throws `HashMismatch` and the save cannot be committed.
   */
  chunks(bytes: Uint8Array, lengths: readonly number[], sha256: readonly (string | null)[]): Promise<void>
  /** Ends it; says how many bytes it had. */
  end(): Promise<number>
}

/** A piece of a stream, verified; `bytes` is only valid until the next one is asked for. */
export interface StreamPiece {
  readonly stream: string
  readonly offset: number
  readonly bytes: Uint8Array
}

export interface Sealed {
  readonly sealedSlot: number
  /** manifests that were in the way, verified: the last one is the base; rising */
  readonly adopted: readonly Manifest[]
  /** what was in the way and is no checkpoint: it cannot be a base */
  readonly damaged: readonly DamageError[]
}

export interface Newest {
  /** the newest authentic manifest; null: there is none */
  readonly manifest: Manifest | null
  /** the highest slot that is taken; 0: none */
  readonly lastSlot: number
  /** newer slots that hold something unreadable */
  readonly damaged: readonly DamageError[]
}

export interface Collected {
  readonly dropped: readonly number[]
  readonly removedKeys: number
}
