import { StoreError } from './errors.ts'

/** Slots are numbered from 1; six digits in names, so that they sort. */
export const maxSlot = 999_999

const segment = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** Refuses what could leave the store's folder or mean something to a file system: the names come over the wire. */
export const checkJob = (job: string): void => {
  if (!segment.test(job)) throw new StoreError('bad-key', `not a job id that may stand in a path: ${quoted(job)}`)
}

export const checkSlot = (slot: number): void => {
  if (!Number.isInteger(slot) || slot < 1 || slot > maxSlot)
    throw new StoreError('bad-key', `a slot is a whole number from 1 to ${maxSlot}, not ${slot}`)
}

/** A key is 2 to 6 names joined by `/`, the first one a job's id. */
export const checkKey = (key: string): readonly string[] => {
  const parts = key.split('/')
  if (parts.length < 2 || parts.length > 6 || !parts.every((part) => segment.test(part)))
    throw new StoreError('bad-key', `not a key that may stand in a path: ${quoted(key)}`)
  return parts
}

/** A prefix is a whole folder: names, each with its `/`. */
export const checkPrefix = (prefix: string): readonly string[] => {
  const parts = prefix.split('/')
  if (parts.pop() !== '' || parts.length < 1 || parts.length > 5 || !parts.every((part) => segment.test(part)))
    throw new StoreError('bad-key', `not a prefix of keys (\`JOB/\` or \`JOB/000001/\`): ${quoted(prefix)}`)
  return parts
}

export const slotName = (slot: number): string => String(slot).padStart(6, '0')

/** Where a save of one attempt writes: under its slot, its token and a nonce, so that no two ever share a key. */
export const saveFolder = (job: string, slot: number, token: number, nonce: string): string =>
  `${job}/${slotName(slot)}/${token}-${nonce}`

/** The slot under which an object lies; null: it is not one of ours. */
export const slotOfKey = (key: string): number | null => {
  const name = key.split('/')[1]
  return name !== undefined && /^[0-9]{6}$/.test(name) ? Number(name) : null
}

const quoted = (text: string): string => JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)
