import { DamageError } from '../errors.ts'
import { slotOfKey } from '../keys.ts'
import type { CheckpointStore } from '../port.ts'
import type { Chain, Collected, Manifest } from './model.ts'
import { readManifest, readRecord } from './read.ts'
import { encodeRecord } from './record.ts'

/** Marks that were read once need not be read again: a dropped slot stays one until its whole job goes. */
const knownDropped = new WeakMap<CheckpointStore, Map<string, Set<number>>>()
const mostJobsKnown = 1000

export interface CollectPlan extends Chain {
  /** a committed manifest whose every hash was compared: only what lies before it is dropped */
  readonly verified: number
  /** manifests that someone restores from, or that a person keeps */
  readonly keep: readonly number[]
}

/**
 * Drops the manifests before `verified` that are not kept, and then removes the objects of dropped slots that no
 * manifest names any more. What lies behind `verified`, saves under way among it, is never touched: a save takes over
 * chunks of the newest manifest alone, and that is never dropped. Killed at any point it leaves a valid chain, and the
 * next one goes on. Throws `DamageError` if a manifest that stays cannot be read: then nobody knows what it names, and
 * nothing is removed.
 */
export const collect = async (plan: CollectPlan): Promise<Collected> => {
  const { store, jobId, key, verified } = plan
  const stays = [await readManifest(plan, verified)]
  const keep = new Set(plan.keep)
  const droppable: number[] = []
  const gone = droppedOf(store, jobId)
  for (const slot of await store.slots(jobId)) {
    if (slot < verified && !keep.has(slot)) {
      if (gone.has(slot)) continue
      if (await isDropped(plan, slot)) gone.add(slot)
      else droppable.push(slot)
    } else if (slot !== verified) {
      const record = await readRecord(plan, slot)
      if (record?.is === 'manifest') stays.push(record)
    }
  }
  const dropped: number[] = []
  for (const slot of droppable) {
    await store.replaceSlot(jobId, slot, encodeRecord({ is: 'dropped', job: jobId, slot }, key))
    gone.add(slot)
    dropped.push(slot)
  }
  const named = new Set(stays.flatMap(keysOf))
  let removedKeys = 0
  for (const object of await store.list(`${jobId}/`)) {
    const slot = slotOfKey(object)
    if (slot === null || !gone.has(slot) || named.has(object)) continue
    await store.remove(object)
    removedKeys++
  }
  return { dropped, removedKeys }
}

/** Removes everything of a job: its chain first, so that nothing points to what is no longer there. May be repeated. */
export const removeJob = async ({ store, jobId }: Pick<Chain, 'store' | 'jobId'>): Promise<void> => {
  knownDropped.get(store)?.delete(jobId)
  for (const slot of await store.slots(jobId)) await store.removeSlot(jobId, slot)
  for (const object of await store.list(`${jobId}/`)) await store.remove(object)
}

const droppedOf = (store: CheckpointStore, jobId: string): Set<number> => {
  const jobs = knownDropped.get(store) ?? new Map<string, Set<number>>()
  knownDropped.set(store, jobs)
  const known = jobs.get(jobId) ?? new Set<number>()
  if (jobs.size >= mostJobsKnown) jobs.clear()
  jobs.set(jobId, known)
  return known
}

const isDropped = async (plan: CollectPlan, slot: number): Promise<boolean> => {
  try {
    return (await readRecord(plan, slot))?.is === 'dropped'
  } catch (error) {
    // damaged, and to be dropped anyway
    if (error instanceof DamageError) return false
    throw error
  }
}

const keysOf = ({ index, packs }: Manifest): readonly string[] => [index.key, ...packs.map(({ key }) => key)]
