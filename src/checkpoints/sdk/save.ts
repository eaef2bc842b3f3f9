import type { RefusedValue } from '../../core/jobs/model.ts'
import { chunkBytes, chunksOf } from '../chain/format.ts'
import type { SaveWriter } from '../chain/model.ts'
import { beginSave } from '../chain/save.ts'
import type { Connection } from './connection.ts'
import { maxLargeMetaBytes } from './frames.ts'
import type { SaveOrder, SaveOutcome, SdkLimits } from './model.ts'
import { parseChunks, parseSaying, type Saying } from './schema.ts'

/** what a `welcome` has beside them */
const announceMargin_bytes = 64 << 10

type Save = Extract<Saying, { t: 'save' }>

/** What the SDK's part of a save came to. `why`: bytes were lost or could not be kept, and nothing may be committed. */
type Received =
  | { readonly is: 'whole'; readonly save: Save; readonly digest: string }
  | { readonly is: 'refused'; readonly values: readonly RefusedValue[] }
  | { readonly is: 'failed'; readonly why: string }

/**
 * A save at a safe point: asks the job for its state, takes the chunks and compares each with its hash, adds what the
 * agent has to add, and commits. Tells the job what became of it. Throws what ends the connection.
 */
export const saveAt = async (
  connection: Connection,
  id: number,
  order: SaveOrder,
  limits: SdkLimits,
): Promise<SaveOutcome> => {
  const began = performance.now()
  let writer
  try {
    writer = await beginSave(order)
  } catch (error) {
    return { is: 'failed', why: sentence(error) }
  }
  if (writer.is === 'fenced') return writer
  try {
    await connection.send({ t: 'save', id })
    const received = await receive(connection, id, writer, limits)
    if (received.is === 'refused') return received
    const isThere = () => connection.ended === null
    const outcome = received.is === 'whole' ? await finish(writer, received, order, isThere) : received
    if (outcome.is === 'committed') {
      const told = { ...outcome, ms: performance.now() - began }
      // the checkpoint counts, whether or not the job still hears of it
      await connection.send({ t: 'committed', id, slot: outcome.slot }).catch(() => {})
      return told
    }
    const why =
      outcome.is === 'failed'
        ? outcome.why
        : outcome.is === 'fenced'
          ? 'another attempt goes on with this job'
          : 'a file cannot be carried'
    await connection.send({ t: 'save-failed', id, why })
    return outcome
  } finally {
    // after a commit there is nothing left to give up
    await writer.abort().catch(() => {})
  }
}

const receive = async (
  connection: Connection,
  id: number,
  writer: SaveWriter,
  limits: SdkLimits,
): Promise<Received> => {
  const save = parseSaying(await connection.next(limits.probe, true), 'save', 'refused')
  sameId(save.id, id)
  if (save.t === 'refused') return { is: 'refused', values: save.values }
  let why: string | null = null
  /** After a failure of ours the rest is read and thrown away: the job sends it all before it listens again. */
  const keeping = async <T>(act: () => Promise<T>): Promise<T | null> => {
    if (why !== null) return null
    try {
      return await act()
    } catch (error) {
      why = sentence(error)
      return null
    }
  }
  for (const { name, bytes } of save.streams) {
    const stream = await keeping(async () => writer.stream(name))
    for (let first = 0; first < chunksOf(bytes);) {
      const frame = await connection.next(limits.frame)
      if (frame.meta.t === 'refused') return { is: 'refused', values: parseSaying(frame, 'refused').values }
      const { lengths, sha256 } = parseChunks(frame, { id, stream: name, first })
      // the last chunk ends where the stream does: more or less would make another state of it
      const due = Math.min(lengths.length * chunkBytes, bytes - first * chunkBytes)
      if (lengths.reduce((sum, length) => sum + length, 0) !== due)
        why ??= `the chunks of ${name} from ${first} on are not as long as the stream was said to be`
      await keeping(async () => await stream?.chunks(frame.payload, lengths, sha256))
      first += lengths.length
    }
    await keeping(async () => await stream?.end())
  }
  const last = parseSaying(await connection.next(limits.frame), 'saved', 'refused')
  sameId(last.id, id)
  if (last.t === 'refused') return { is: 'refused', values: last.values }
  return why === null ? { is: 'whole', save, digest: last.digest } : { is: 'failed', why }
}

const finish = async (
  writer: SaveWriter,
  { save, digest }: Extract<Received, { is: 'whole' }>,
  order: SaveOrder,
  isThere: () => boolean,
): Promise<Exclude<SaveOutcome, { is: 'committed' }> | Omit<Extract<SaveOutcome, { is: 'committed' }>, 'ms'>> => {
  try {
    const refused = (await order.more?.(writer)) ?? []
    if (refused.length > 0) return { is: 'refused', values: refused }
    // a job without its connection runs on: what was added meanwhile may be of another moment than its values
    if (order.more && !isThere()) return { is: 'failed', why: 'the job left while its files were added' }
    const { values, environment, meta } = save
    // a checkpoint that could not be announced to the next attempt must not become one
    const announcing = Buffer.byteLength(JSON.stringify({ values, environment, meta, streams: save.streams }))
    if (announcing > maxLargeMetaBytes - announceMargin_bytes)
      return {
        is: 'failed',
        why: `the list of values and what the SDK adds have ${announcing} bytes, more than a restore can announce: carry large things as values`,
      }
    return await writer.commit({
      method: 'sdk',
      savedAt: order.savedAt,
      values,
      environment,
      digest,
      meta,
      notes: order.notes,
    })
  } catch (error) {
    return { is: 'failed', why: sentence(error) }
  }
}

const sameId = (got: number, due: number): void => {
  if (got !== due) throw new Error(`the job answered ${got} where ${due} was asked`)
}

const sentence = (error: unknown): string => (error instanceof Error ? error.message : String(error))
