/**
 * Where checkpoints are kept: objects by key, and slots that are created once. Adapters: a directory (S3 comes beside it).
 * Both pass `test/conformance/checkpoint-store`.
 */
export interface CheckpointStore {
  /** Writes an object whole and durably before it returns; a second writer of a key is a mistake of the caller's. */
  put(key: string, bytes: Uint8Array): Promise<void>
  /** Streams a large object; durable once `close` resolves. */
  create(key: string): Promise<ObjectWriter>
  read(key: string, range?: { readonly offset: number; readonly length: number }): Promise<Uint8Array | null>
  /** Creates the manifest of a slot if it is absent: `won`, `mine` (the same bytes are there already), `taken` (others' are). */
  createSlot(job: string, slot: number, bytes: Uint8Array): Promise<'won' | 'mine' | 'taken'>
  readSlot(job: string, slot: number): Promise<Uint8Array | null>
  /**
   * Puts other bytes into a slot that is taken, whole or not at all; the slot stays taken at every moment. Only a
   * collector does that, to leave the mark that a slot was dropped: a slot set free would let a fenced writer in.
   */
  replaceSlot(job: string, slot: number, bytes: Uint8Array): Promise<void>
  /** Frees a slot; only where a whole job is removed. That it is not taken is no error. */
  removeSlot(job: string, slot: number): Promise<void>
  /** The slots of a job that are taken, rising. */
  slots(job: string): Promise<readonly number[]>
  /** The keys that begin with `prefix`, a whole folder of keys: `JOB/` or `JOB/000001/`, rising. */
  list(prefix: string): Promise<readonly string[]>
  /** Removes an object; that it is not there is no error. */
  remove(key: string): Promise<void>
}

export interface ObjectWriter {
  write(bytes: Uint8Array): Promise<void>
  /** Makes it durable and visible; before that there is no object of this key. */
  close(): Promise<void>
  abort(): Promise<void>
}
