import { StoreError } from './errors.ts'

export type DialectName = 'sqlite' | 'postgres'
interface Migration {
  readonly number: number
  readonly name: string
  readonly up: (dialect: DialectName) => readonly string[]
}

/**
 * Forward only, each applied once, in this order, in one transaction. One that was released is never changed: a mistake in
 * it is mended by the next.
 */
export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: 'jobs, attempts, moves, connections, decisions, events',
    up: (dialect) => {
      const { drawn, integer, document, text } = types[dialect]
      const table = (name: string, ...columns: readonly string[]) => `
        create table ${name} (
          nr ${drawn},
          id ${text} not null unique,
          version ${integer} not null,
          ${columns.map((c) => `${c}, `).join('')}
          doc ${document} not null
        )`
      return [
        table(
          'jobs',
          `name ${text} not null unique`,
          `state ${text} not null`,
          `ended ${integer} not null`,
          `created_at ${integer} not null`,
          `due ${integer}`,
        ),
        'create index jobs_due on jobs (due, nr)',
        'create index jobs_newest on jobs (created_at desc, nr desc)',
        'create index jobs_newest_by_ended on jobs (ended, created_at desc, nr desc)',
        table(
          'attempts',
          `job_id ${text} not null`,
          `token ${integer} not null`,
          `agent_id ${text} not null`,
          `alive ${integer} not null`,
        ),
        'create index attempts_by_job on attempts (job_id, token)',
        'create index attempts_by_agent on attempts (agent_id, nr)',
        'create index attempts_alive on attempts (nr) where alive = 1',
        'create index attempts_alive_by_agent on attempts (agent_id, nr) where alive = 1',
        table('moves', `job_id ${text} not null`),
        'create index moves_by_job on moves (job_id, nr)',
        table('connections', `committed_micros ${integer} not null`, `cap_micros ${integer}`),
        table('decisions', `subject ${text} not null`, `policy ${text} not null`),
        'create index decisions_by_subject on decisions (subject, nr)',
        'create index decisions_by_policy on decisions (subject, policy, nr)',
        table('installation'),
        `create table events (seq ${integer} primary key, subject ${text} not null, doc ${document} not null)`,
        'create index events_by_subject on events (subject, seq)',
        `create table counters (name ${text} primary key, last ${integer} not null)`,
        "insert into counters (name, last) values ('events', 0)",
      ]
    },
  },
]

/** Text compares by its bytes in both, so that a range by prefix means the same. `json` keeps the document as it was given. */
const types = {
  sqlite: { drawn: 'integer primary key', integer: 'integer', document: 'text', text: 'text' },
  postgres: {
    drawn: 'bigint generated always as identity primary key',
    integer: 'bigint',
    document: 'json',
    text: 'text collate "C"',
  },
} as const

export const newest = Math.max(...migrations.map(({ number }) => number))

export const versionTable: Record<DialectName, string> = {
  sqlite:
    'create table if not exists schema_version (number integer primary key, name text not null, applied_at integer not null)',
  postgres:
    'create table if not exists schema_version (number bigint primary key, name text not null, applied_at bigint not null)',
}

/**
 * What is to be executed to bring a store from the version it is at to the newest.
 *
 * @param at the highest number in `schema_version`; 0: an empty store
 * @throws StoreError `store_newer`
 */
export function pending(at: number, dialect: DialectName, where: string, now: number): readonly string[] {
  if (at > newest)
    throw new StoreError(
      'store_newer',
      `${where} was written by a newer Portal: its schema is version ${at}, this Portal knows up to ${newest}. ` +
        'Start that newer Portal again, or restore a copy from before its upgrade; nothing was changed.',
    )
  return migrations
    .filter(({ number }) => number > at)
    .flatMap(({ number, name, up }) => [
      ...up(dialect),
      `insert into schema_version (number, name, applied_at) values (${number}, '${name}', ${now})`,
    ])
}
