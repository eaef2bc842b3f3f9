import type { DecisionRecord, EventRecord } from '../core/decisions.ts'
import type { AttemptRecord, JobRecord, MoveRecord } from '../core/jobs/model.ts'
import type { Instant } from '../core/time/index.ts'

/** An account at a provider, or own machines. `committedMicros` is the one counter that a cap is checked against (J-CAP-2). */
export interface ConnectionRecord {
  readonly id: string
  readonly version: number
  readonly provider: string
  readonly settings: Readonly<Record<string, unknown>>
  readonly currency: string
  /** spent and committed together, micros */
  readonly committedMicros: number
  readonly capMicros: number | null
}

/** One row for the whole installation: its name (part of every tag), and when a control plane last looked. */
export interface InstallationRecord {
  readonly id: string
  readonly name: string
  readonly version: number
  readonly createdAt: Instant
  readonly lastSeenAt: Instant
}

/** What is remembered, by noun. Every row has `id` and `version`. */
export interface Tables {
  readonly jobs: JobRecord
  readonly attempts: AttemptRecord
  readonly moves: MoveRecord
  readonly connections: ConnectionRecord
  readonly decisions: DecisionRecord & { readonly version: number }
  readonly installation: InstallationRecord
}
export type TableName = keyof Tables

/**
 * One change of one row. Each is its own guard:
 * `insert` is refused when the id (or a job's name) is taken; `update` when the row's version is another (compare-and-set:
 * the store writes `row` with `version` = `expect` + 1 itself); `add` when the sum would pass the limit column (null: no limit;
 * taking money back never passes it); `must` when the row is not as said, and writes nothing. A row begins at version 1, and
 * every write raises it by one, `add` too.
 */
export type Change = { readonly [T in TableName]: ChangeOf<T> }[TableName]
export type ChangeOf<T extends TableName> =
  | { readonly do: 'insert'; readonly table: T; readonly row: Omit<Tables[T], 'version'> }
  | {
      readonly do: 'update'
      readonly table: T
      readonly id: string
      readonly expect: number
      readonly row: Partial<Omit<Tables[T], 'id' | 'version'>>
    }
  | { readonly do: 'remove'; readonly table: T; readonly id: string; readonly expect: number }
  | { readonly do: 'must'; readonly table: T; readonly id: string; readonly version: number }
  | AddOf<T>
type AddOf<T> = T extends 'connections'
  ? {
      readonly do: 'add'
      readonly table: 'connections'
      readonly id: string
      readonly micros: number
      readonly withinCap: boolean
    }
  : never

/** A transaction is a value: all of it is applied in one go, or nothing is. */
export interface Transaction {
  readonly changes: readonly Change[]
  readonly events: readonly Omit<EventRecord, 'seq'>[]
}

/** `unknown` (the connection broke at commit) is never read as failure; it is resolved by attempting the opposite write. */
export type Applied =
  | { readonly is: 'applied'; readonly seq: number }
  | {
      readonly is: 'refused'
      readonly change: number
      readonly why: 'exists' | 'name_taken' | 'missing' | 'version' | 'cap'
    }
  | { readonly is: 'unknown'; readonly error: string }

/** What is remembered. Adapters: SQLite (embedded) and PostgreSQL; both pass `test/conformance/store`. */
export interface Store {
  apply(transaction: Transaction): Promise<Applied>

  get<T extends TableName>(table: T, id: string): Promise<Tables[T] | null>
  jobByName(name: string): Promise<JobRecord | null>
  /** Jobs whose name begins so: completion, prefixes and the nearest known. */
  jobsByPrefix(prefix: string, limit: number): Promise<readonly JobRecord[]>
  /**
   * Newest first, at most 1,000 where no limit is given; `ended: false` leaves out those that ended, `true` the others. The
   * page before the instant `before`: no page ends among jobs of one instant, so one may be longer than its limit.
   */
  jobs(filter: {
    readonly ended?: boolean
    readonly limit?: number
    readonly before?: Instant
  }): Promise<readonly JobRecord[]>
  /**
   * What is due, oldest first, by an index: jobs that ended too. `never` and beyond is never due, and is read back
   * as `never`.
   */
  jobsDue(now: Instant, limit: number): Promise<readonly JobRecord[]>
  nextDue(): Promise<Instant | null>
  attemptsOf(jobId: string): Promise<readonly AttemptRecord[]>
  /** All that are not `gone`. */
  attemptsAlive(): Promise<readonly AttemptRecord[]>
  /** `alive` leaves out those that are `gone`: on an owned machine they only grow in number. */
  attemptsOfAgent(agentId: string, filter?: { readonly alive: boolean }): Promise<readonly AttemptRecord[]>
  movesOf(jobId: string): Promise<readonly MoveRecord[]>
  /** Newest first; `before` is the id of the last one of the page before. */
  decisionsOf(
    subject: string,
    page: { readonly limit: number; readonly before?: string },
  ): Promise<readonly DecisionRecord[]>
  lastDecision(subject: string, policy: string): Promise<(DecisionRecord & { readonly version: number }) | null>
  connections(): Promise<readonly ConnectionRecord[]>
  events(after: number, filter: { readonly subject?: string; readonly limit: number }): Promise<readonly EventRecord[]>

  close(): Promise<void>
}
