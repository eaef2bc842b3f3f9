import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { DamageError } from '../errors.ts'
import { saveFolder, slotName, slotOfKey } from '../keys.ts'
import { chunksOf, indexEntryBytes, indexSegmentBytes } from './format.ts'
import type { Chain, Json, Manifest, SlotRecord } from './model.ts'

/**
 * A record as it lies in a slot: `portal-slot 1 LENGTH HMAC\n`, then LENGTH bytes of JSON. The code is HMAC-SHA256 with
 * the job's key over the JSON, which names job and slot, so that no record can be put in another's place.
 */
const magic = 'portal-slot 1'
const headBytes = /^portal-slot 1 ([0-9]{1,9}) ([0-9a-f]{64})\n/
/** A head is shorter than that. */
const longestHead = 96

const hash = z.string().regex(/^[0-9a-f]{64}$/)
const size = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const slot = z.number().int().min(1).max(999_999)
const job = z.string().min(1).max(128)
const key = z.string().min(1).max(512)
// it comes from JSON.parse, so it is JSON; walking 16 MiB of it to say so again is not worth it
const json = z.unknown().transform((value) => value as Json)

export const streamName = /^[a-z][a-z0-9:._-]{0,63}$/

const manifestSchema = z.strictObject({
  is: z.literal('manifest'),
  job,
  slot,
  parent: slot.nullable(),
  token: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
  method: z.enum(['sdk', 'files', 'process']),
  savedAt: size,
  values: z.array(z.strictObject({ path: z.string().max(8192), kind: z.string().max(1024), bytes: size })).max(200_000),
  environment: json,
  digest: z.string().max(256).nullable(),
  streams: z.array(z.strictObject({ name: z.string().regex(streamName), bytes: size })).max(64),
  index: z.strictObject({ key, bytes: size, hashes: z.array(hash).max(65_536) }),
  packs: z.array(z.strictObject({ key, bytes: size })).max(65_535),
  bytes: size,
  storedBytes: size,
  meta: json,
  notes: json,
})

const recordSchema = z.discriminatedUnion('is', [
  manifestSchema,
  z.strictObject({ is: z.literal('seal'), job, slot, by: z.string().min(1).max(512) }),
  z.strictObject({ is: z.literal('dropped'), job, slot }),
])

const macOf = (key: Uint8Array, body: Uint8Array): Buffer =>
  createHmac('sha256', key).update(`${magic}\n`).update(body).digest()

/** The same record and key give the same bytes: a put that is repeated is known again. */
export const encodeRecord = (record: SlotRecord, key: Uint8Array): Buffer => {
  const body = Buffer.from(JSON.stringify(inOrder(record)))
  return Buffer.concat([Buffer.from(`${magic} ${body.length} ${macOf(key, body).toString('hex')}\n`), body])
}

/** Reads what lies in a slot. Nothing of it is looked at before its code is right. Throws `DamageError`. */
export const decodeRecord = (bytes: Uint8Array, { jobId, key }: Chain, slot: number): SlotRecord => {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const head = headBytes.exec(all.subarray(0, longestHead).toString('latin1'))
  if (!head)
    throw new DamageError(
      'record-malformed',
      jobId,
      slot,
      'not a record of this format: overwritten, or by a newer Portal',
    )
  const body = all.subarray(head[0].length)
  if (body.length !== Number(head[1]))
    throw new DamageError('record-malformed', jobId, slot, `${body.length} of ${head[1]} bytes of the record are there`)
  if (!timingSafeEqual(macOf(key, body), Buffer.from(head[2] as string, 'hex')))
    throw new DamageError(
      'record-forged',
      jobId,
      slot,
      'the record was changed or forged: its authentication code is wrong',
    )
  let parsed
  try {
    parsed = recordSchema.safeParse(JSON.parse(body.toString('utf8')))
  } catch (error) {
    throw new DamageError('record-malformed', jobId, slot, `not a record: ${String(error)}`)
  }
  if (!parsed.success)
    throw new DamageError(
      'record-malformed',
      jobId,
      slot,
      `not a record: ${z.prettifyError(parsed.error).slice(0, 500)}`,
    )
  const record = parsed.data
  if (record.job !== jobId)
    throw new DamageError('other-job', jobId, slot, `the record is of another job, ${record.job}`)
  if (record.slot !== slot)
    throw new DamageError('other-slot', jobId, slot, `the record is of slot ${slotName(record.slot)}, put here again`)
  if (record.is === 'manifest') {
    const wrong = inconsistency(record)
    if (wrong) throw new DamageError('record-malformed', jobId, slot, wrong)
  }
  return record
}

/** What in a manifest does not fit together; null: it does. Its author had the key, and may still be mistaken. */
const inconsistency = (manifest: Manifest): string | null => {
  const { streams, index, packs, bytes, job, slot, token, parent } = manifest
  const chunks = streams.reduce((sum, stream) => sum + chunksOf(stream.bytes), 0)
  if (parent !== null && parent >= slot) return `its parent, slot ${parent}, is not before it`
  if (new Set(streams.map(({ name }) => name)).size !== streams.length) return 'two of its streams have one name'
  if (streams.reduce((sum, stream) => sum + stream.bytes, 0) !== bytes) return 'its streams do not add up to its bytes'
  if (index.bytes !== chunks * indexEntryBytes) return `its index has not one entry for each of ${chunks} chunks`
  if (index.hashes.length !== Math.ceil(index.bytes / indexSegmentBytes)) return 'its index has not one hash a part'
  if (!index.key.startsWith(saveFolder(job, slot, token, ''))) return 'its index lies under another slot'
  for (const pack of packs) {
    const of = slotOfKey(pack.key)
    if (!pack.key.startsWith(`${job}/`) || of === null || of < 1 || of > slot)
      return `its pack ${pack.key} is not of this job and of this slot or an earlier one`
  }
  return null
}

/** Fields in one order, whoever built the record. */
const inOrder = (record: SlotRecord): SlotRecord => {
  if (record.is !== 'manifest') {
    const { is, job, slot } = record
    return is === 'seal' ? { is, job, slot, by: record.by } : { is, job, slot }
  }
  const { is, job, slot, parent, token, method, savedAt, environment, digest, bytes, storedBytes, meta, notes } = record
  return {
    is,
    job,
    slot,
    parent,
    token,
    method,
    savedAt,
    values: record.values.map(({ path, kind, bytes }) => ({ path, kind, bytes })),
    environment,
    digest,
    streams: record.streams.map(({ name, bytes }) => ({ name, bytes })),
    index: { key: record.index.key, bytes: record.index.bytes, hashes: record.index.hashes },
    packs: record.packs.map(({ key, bytes }) => ({ key, bytes })),
    bytes,
    storedBytes,
    meta,
    notes,
  }
}
