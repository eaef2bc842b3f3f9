import type { Logger } from 'pino'
import { type Manifest, type Newest, type Sealed, StoreError } from '../../checkpoints/index.ts'
import type { EventRecord } from '../../core/decisions.ts'
import type { Asker, JobRecord } from '../../core/jobs/model.ts'
import type { Why } from '../../core/reasons.ts'
import { second } from '../../core/time/index.ts'
import type { Provider } from '../../providers/port.ts'
import type { Applied, Change, Store } from '../../store/port.ts'
import type { Agents } from '../agents.ts'
import type { Logs } from '../logs.ts'
import type { Clock, Random } from '../ports.ts'

/** The chains of checkpoints, as far as the control plane touches them. Each throws `DamageError` or `StoreError` by name. */
export interface Chains {
  seal(jobId: string, after: number, by: string): Promise<Sealed>
  /** Reads a slot's manifest and checks every hash and length of it. */
  verify(jobId: string, slot: number): Promise<Manifest>
  newest(jobId: string): Promise<Newest>
  /** The end of a log that lies beside a checkpoint, in pieces; each is used before the next is asked for. */
  lastLog(jobId: string, manifest: Manifest): AsyncIterable<Uint8Array>
  /** The archive of declared outputs that a checkpoint carries, in pieces as above; null: it carries none. */
  outputs(jobId: string, slot: number): Promise<AsyncIterable<Uint8Array> | null>
  list(jobId: string): Promise<readonly Manifest[]>
  /** Drops what no longer serves: everything before this slot, whose every hash was checked; null: all of the job. */
  collect(jobId: string, verified: number | null): Promise<void>
  /** Why the store cannot be trusted with slots; null: it can. */
  check(): Promise<string | null>
}

/** Everything that a step needs of the world: each a port, so that the same engine runs on virtual time. */
export interface Context {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly providers: ReadonlyMap<string, Provider>
  readonly agents: Agents
  readonly logs: Logs
  readonly log: Logger
  readonly installation: string
  readonly chains: Chains
  /** a job's key, base64, for its agent */
  readonly keyOf: (jobId: string) => string
  readonly tokenOf: (agentId: string) => string
  /** where agents find the control plane */
  readonly url: () => string
  readonly checkpoints: { readonly directory: string }
  readonly outputsIn: (attemptId: string) => boolean
  /** tells whoever follows events that there are new ones */
  readonly happened: (seq: number) => void
}

export type NewEvent = Omit<EventRecord, 'seq' | 'at'>

/** What came of a step: it changed something (look again at once), someone else changed it (the same), or nothing can be done before a while. */
export type Done = 'again' | { readonly later: number }

export const event = (
  job: JobRecord,
  kind: string,
  by: Asker | 'portal',
  why: Why | null,
  facts: EventRecord['facts'] = {},
): NewEvent => ({
  subject: job.id,
  kind,
  by: byName(by),
  why,
  facts,
})

export const byName = (by: Asker | 'portal'): string =>
  by === 'portal' ? 'portal' : 'person' in by ? by.person : `policy ${by.policy}`

export const updateJob = (job: JobRecord, row: Partial<Omit<JobRecord, 'id' | 'version'>>): Change => ({
  do: 'update',
  table: 'jobs',
  id: job.id,
  expect: job.version,
  row,
})

/**
 * Applies a change of one job. An answer that did not arrive is resolved by attempting the opposite write: raising the job's
 * version. If that succeeds, the change was not applied and never can be.
 *
 * @returns the seq of the last event there is; null: someone else was first and nothing was changed, look again
 */
export async function commit(
  context: Context,
  job: JobRecord,
  changes: readonly Change[],
  events: readonly NewEvent[],
): Promise<number | null> {
  const at = context.clock.now()
  const applied = await context.store.apply({ changes, events: events.map((one) => ({ ...one, at })) })
  if (applied.is === 'unknown') return resolve(context, job, applied)
  if (applied.is === 'refused') return null
  if (events.length > 0) context.happened(applied.seq)
  return applied.seq
}

async function resolve(context: Context, job: JobRecord, unknown: Applied & { is: 'unknown' }): Promise<null> {
  context.log.warn(
    { job: job.id, error: unknown.error },
    'the store did not say whether a change was made; finding out',
  )
  for (let wait = 100; ; wait = Math.min(wait * 2, 5000)) {
    const opposite = await context.store.apply({ changes: [updateJob(job, {})], events: [] })
    if (opposite.is !== 'unknown') return null
    await new Promise<void>((go) => void context.clock.after(wait, go))
  }
}

/** Removes what a verified base has made superfluous. Nothing waits for it: what is left is collected with the next one. */
export const collectBehind = (context: Context, jobId: string, slot: number): void =>
  void context.chains.collect(jobId, slot).catch((error: unknown) => {
    context.log.warn({ job: jobId, slot, error: String(error) }, 'earlier checkpoints could not be removed')
  })

/** How soon a chain that cannot be read or written just now is tried again. */
export const storeRetry = 2 * second

/** Whether what went wrong with a chain may pass: damage is final, a store that does not answer is not. */
export const isPassing = (error: unknown): boolean => error instanceof StoreError
