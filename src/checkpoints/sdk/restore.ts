import { openStreams } from '../chain/streams.ts'
import { DamageError } from '../errors.ts'
import { agentStream } from '../outputs/stream.ts'
import type { Connection } from './connection.ts'
import type { RestoreOutcome, SdkLimits, SdkOptions } from './model.ts'
import { parseSaying } from './schema.ts'

type Source = NonNullable<SdkOptions['restore']>

/** What `welcome` says of a checkpoint. */
export const announced = ({ manifest }: Source) => ({
  slot: manifest.slot,
  digest: manifest.digest,
  environment: manifest.environment,
  values: manifest.values,
  streams: manifest.streams.filter(({ name }) => !agentStream(name)),
  meta: manifest.meta,
})

/**
 * Sends the state, each piece verified before it leaves; says `verified` only after the last one, and compares the
 * digest of the values as they came to life. Throws what ends the connection.
 */
export const restoreInto = async (
  connection: Connection,
  source: Source,
  limits: SdkLimits,
): Promise<RestoreOutcome> => {
  const began = performance.now()
  try {
    for await (const { stream, offset, bytes } of openStreams(source, source.manifest, (name) => !agentStream(name)))
      await connection.send({ t: 'data', stream, offset }, bytes)
  } catch (error) {
    if (connection.ended !== null) throw error
    const why = error instanceof Error ? error.message : String(error)
    if (error instanceof DamageError) {
      await connection.send({ t: 'damaged', what: why })
      return { is: 'damaged', why }
    }
    await connection.send({ t: 'exit', why })
    return { is: 'failed', why }
  }
  await connection.send({ t: 'verified' })
  const answer = parseSaying(await connection.next(limits.restored), 'restored', 'restore-refused')
  if (answer.t === 'restore-refused') return { is: 'refused', values: answer.values, why: answer.why }
  return sameDigest(source, answer.digest) ?? { is: 'restored', ms: performance.now() - began }
}

/** Null: the live values are the ones that were saved (K-WHOLE-3). */
export const sameDigest = ({ manifest }: Source, digest: string | null): RestoreOutcome | null =>
  digest === manifest.digest
    ? null
    : {
        is: 'damaged',
        why: `the values came out otherwise than they were saved: digest ${digest ?? 'unknown'} instead of ${manifest.digest ?? 'none'}`,
      }
