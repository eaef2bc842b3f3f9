import { StoreError } from '../errors.ts'
import { checkJob, checkKey, checkPrefix, checkSlot } from '../keys.ts'
import type { CheckpointStore, ObjectWriter } from '../port.ts'

export type StoreCall = keyof CheckpointStore | 'write' | 'close' | 'abort'

export interface MemoryStoreOptions {
  /**
   * Awaited before and after the effect of each call: the simulator's queue orders calls by it, and what it throws is a
   * fault or a crash at that place.
   */
  readonly at?: (call: StoreCall, when: 'before' | 'after', key: string) => Promise<void> | void
  /** another process's view of the same store, with faults of its own */
  readonly of?: Pick<MemoryStore, 'objects' | 'records'>
}

export interface MemoryStore extends CheckpointStore {
  /** the stored objects themselves, by key; a test damages them here */
  readonly objects: Map<string, Uint8Array>
  /** records by `JOB/SLOT` */
  readonly records: Map<string, Uint8Array>
}

/** A fake of a store for simulations and tests: the same rules as a directory, in memory, with faults where they are asked for. */
export const memoryStore = ({ at = () => {}, of }: MemoryStoreOptions = {}): MemoryStore => {
  const objects = of?.objects ?? new Map<string, Uint8Array>()
  const records = of?.records ?? new Map<string, Uint8Array>()
  const call = async <T>(name: StoreCall, key: string, effect: () => T): Promise<T> => {
    await at(name, 'before', key)
    const result = effect()
    await at(name, 'after', key)
    return result
  }
  const putNew = (key: string, bytes: Uint8Array) => {
    const there = objects.get(key)
    if (there && !equal(there, bytes)) throw new StoreError('exists', `write ${key}: another object has this key`)
    objects.set(key, bytes)
  }

  return {
    objects,
    records,

    put: (key, bytes) =>
      call('put', key, () => {
        checkKey(key)
        putNew(key, Uint8Array.from(bytes))
      }),

    create: (key) =>
      call('create', key, () => {
        checkKey(key)
        return memoryWriter(key, call, (bytes) => {
          if (objects.has(key)) throw new StoreError('exists', `write ${key}: another object has this key`)
          putNew(key, bytes)
        })
      }),

    read: (key, range) =>
      call('read', key, () => {
        checkKey(key)
        const bytes = objects.get(key)
        if (!bytes) return null
        return range ? bytes.slice(range.offset, range.offset + range.length) : bytes.slice()
      }),

    createSlot: (job, slot, bytes) =>
      call('createSlot', `${job}/${slot}`, () => {
        const key = slotKey(job, slot)
        const there = records.get(key)
        if (there) return equal(there, bytes) ? 'mine' : 'taken'
        records.set(key, Uint8Array.from(bytes))
        return 'won'
      }),

    readSlot: (job, slot) => call('readSlot', `${job}/${slot}`, () => records.get(slotKey(job, slot))?.slice() ?? null),

    replaceSlot: (job, slot, bytes) =>
      call('replaceSlot', `${job}/${slot}`, () => {
        const key = slotKey(job, slot)
        if (!records.has(key)) throw new StoreError('io', `replace slot ${key}: it is not taken`)
        records.set(key, Uint8Array.from(bytes))
      }),

    removeSlot: (job, slot) =>
      call('removeSlot', `${job}/${slot}`, () => {
        records.delete(slotKey(job, slot))
      }),

    slots: (job) =>
      call('slots', job, () => {
        checkJob(job)
        return [...records.keys()]
          .filter((key) => key.startsWith(`${job}/`))
          .map((key) => Number(key.slice(job.length + 1)))
          .sort((a, b) => a - b)
      }),

    list: (prefix) =>
      call('list', prefix, () => {
        checkPrefix(prefix)
        return [...objects.keys()].filter((key) => key.startsWith(prefix)).sort()
      }),

    remove: (key) =>
      call('remove', key, () => {
        checkKey(key)
        objects.delete(key)
      }),
  }
}

const slotKey = (job: string, slot: number) => {
  checkJob(job)
  checkSlot(slot)
  return `${job}/${slot}`
}

const memoryWriter = (
  key: string,
  call: <T>(name: StoreCall, key: string, effect: () => T) => Promise<T>,
  finish: (bytes: Uint8Array) => void,
): ObjectWriter => {
  const parts: Uint8Array[] = []
  let open = true
  const whileOpen = () => {
    if (!open) throw new StoreError('io', `write ${key}: the object was closed or given up already`)
  }
  return {
    write: (bytes) =>
      call('write', key, () => {
        whileOpen()
        parts.push(Uint8Array.from(bytes))
      }),
    close: () =>
      call('close', key, () => {
        whileOpen()
        open = false
        finish(Buffer.concat(parts))
      }),
    abort: () =>
      call('abort', key, () => {
        open = false
        parts.length = 0
      }),
  }
}

const equal = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0
