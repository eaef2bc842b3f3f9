/** What can be wrong with a place where checkpoints are kept. */
export type StoreFault =
  /** no room left, or a quota reached */
  | 'full'
  | 'denied'
  | 'read-only'
  /** the key or job id is not one that may be used in a path */
  | 'bad-key'
  /** another object has this key */
  | 'exists'
  /** anything else that the system said */
  | 'io'

/** A store could not do what it was asked; nothing of the object is visible. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly fault: StoreFault
  constructor(fault: StoreFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.fault = fault
  }
}

/** What of a checkpoint is damaged. */
export type Damaged =
  /** there is no record in the slot */
  | 'slot-missing'
  /** the slot was dropped by the collector: it holds no checkpoint any more */
  | 'slot-dropped'
  /** the slot holds a seal where a manifest was looked for */
  | 'slot-sealed'
  /** its bytes are not a record: cut off, overwritten, or of a newer format */
  | 'record-malformed'
  /** its authentication code is wrong: changed, forged, or of another job's key */
  | 'record-forged'
  /** it is authentic, but of another job */
  | 'other-job'
  /** it is authentic, but of another slot */
  | 'other-slot'
  | 'index-missing'
  | 'index-damaged'
  | 'pack-missing'
  | 'pack-truncated'
  | 'chunk-damaged'

/** A checkpoint is not what was saved. Nothing of it was handed on; the message names what, and where. */
export class DamageError extends Error {
  override readonly name = 'DamageError'
  readonly damage: Damaged
  readonly jobId: string
  readonly slot: number
  constructor(damage: Damaged, jobId: string, slot: number, what: string) {
    super(`checkpoint ${jobId}/${String(slot).padStart(6, '0')}: ${what}`)
    this.damage = damage
    this.jobId = jobId
    this.slot = slot
  }
}

/** A slot was to be written whose forerunner is not there: the number is wrong, or the store has gone back in time. */
export class ChainGapError extends Error {
  override readonly name = 'ChainGapError'
}

/** The bytes that arrived do not have the hash that their sender made: they changed on the way, or while they were hashed. */
export class HashMismatch extends Error {
  override readonly name = 'HashMismatch'
}

/**
 * Whether the slot was taken is not known: the store did not answer for certain. Nothing was removed. Repeating `commit`
 * repeats the same bytes; the chain tells which it was.
 */
export class CommitUnknownError extends Error {
  override readonly name = 'CommitUnknownError'
}
