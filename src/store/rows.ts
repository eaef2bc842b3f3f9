import { isEnded } from '../core/jobs/model.ts'
import { never } from '../core/time/index.ts'
import type { TableName, Tables } from './port.ts'

export type Cell = string | number | null
/** A row as a driver gives it: by column. */
export type Raw = Readonly<Record<string, unknown>>

/**
 * A record is kept whole, as one JSON document, so that a new field needs no migration. What is looked up, guarded or
 * sorted by stands beside it in columns of their own; they are derived from the record here and nowhere else.
 */
type ColumnsOf<T extends TableName> = (row: Tables[T]) => Readonly<Record<string, Cell>>
const columnsOf: { readonly [T in TableName]: ColumnsOf<T> } = {
  jobs: ({ name, state, createdAt, due }) => ({
    name: text('jobs.name', name),
    state: state.is,
    ended: isEnded(state) ? 1 : 0,
    created_at: whole('jobs.createdAt', createdAt),
    // what is never due stands in no index of what is due; JSON has no Infinity, which is taken for never too
    due: due >= never ? null : whole('jobs.due', due),
  }),
  attempts: ({ jobId, token, agentId, state }) => ({
    job_id: text('attempts.jobId', jobId),
    token: whole('attempts.token', token),
    agent_id: text('attempts.agentId', agentId),
    alive: state === 'gone' ? 0 : 1,
  }),
  moves: ({ jobId }) => ({ job_id: text('moves.jobId', jobId) }),
  connections: ({ committedMicros, capMicros }) => ({
    committed_micros: whole('connections.committedMicros', committedMicros),
    cap_micros: capMicros === null ? null : whole('connections.capMicros', capMicros),
  }),
  decisions: ({ subject, policy }) => ({
    subject: text('decisions.subject', subject),
    policy: text('decisions.policy', policy),
  }),
  installation: () => ({}),
}

/** The names of a table's own columns, in the order of its statements. */
export const columnNames: { readonly [T in TableName]: readonly string[] } = {
  jobs: ['name', 'state', 'ended', 'created_at', 'due'],
  attempts: ['job_id', 'token', 'agent_id', 'alive'],
  moves: ['job_id'],
  connections: ['committed_micros', 'cap_micros'],
  decisions: ['subject', 'policy'],
  installation: [],
}

/** The columns of one row to write. */
export const toColumns = <T extends TableName>(table: T, row: Tables[T]): Record<string, Cell> => ({
  ...columnsOf[table](row),
  id: text(`${table}.id`, row.id),
  version: whole(`${table}.version`, row.version),
  doc: JSON.stringify(row),
})

/** The record that a row holds. Columns that change without the document (version, counters) win over it. */
export const fromRow = <T extends TableName>(table: T, raw: Raw): Tables[T] => {
  const row = JSON.parse(raw['doc'] as string) as Record<string, unknown>
  row['version'] = raw['version']
  if (table === 'jobs') row['due'] = raw['due'] ?? never
  if (table === 'connections') row['committedMicros'] = raw['committed_micros']
  return row as unknown as Tables[T]
}

/** A whole number that survives JSON and every driver; anything else would be changed in silence. */
export const whole = (name: string, value: number): number => {
  if (!Number.isSafeInteger(value))
    throw new TypeError(
      `${name} must be a whole number within ±2^53, not ${value} (for an instant that never comes: never)`,
    )
  return value
}

/** PostgreSQL cannot keep a zero character in a text, so no dialect does; a document has it escaped. */
export const isKeepable = (value: string): boolean => !value.includes('\0') && value.isWellFormed()

export const text = (name: string, value: string): string => {
  if (typeof value !== 'string' || !isKeepable(value))
    throw new TypeError(`${name} must be well-formed text without a zero character`)
  return value
}
