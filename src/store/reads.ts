import { fromRow, isKeepable, type Cell, type Raw } from './rows.ts'
import type { Statement, Statements } from './statements.ts'
import type { EventRecord } from '../core/decisions.ts'
import type { Store, TableName, Tables } from './port.ts'

/** `jobs` without a limit gives this many: nobody is handed a million rows unasked. */
const jobsAtMost = 1000

/** Beyond every character, so that a range by prefix ends after all names that begin so. */
const lastCharacter = '\u{10FFFF}'
/** What no column can hold is not there; PostgreSQL would answer with an error instead. */
const findable = (cell: Cell): boolean => typeof cell !== 'string' || isKeepable(cell)

/** All that is read, over whatever executes statements. */
export function reads(
  statements: Statements,
  execute: (statement: Statement) => Promise<readonly Raw[]>,
): Omit<Store, 'apply' | 'close'> {
  const query = async (statement: Statement) => (statement.parameters.every(findable) ? execute(statement) : [])
  const all = async <T extends TableName>(table: T, statement: Statement): Promise<readonly Tables[T][]> =>
    (await query(statement)).map((raw) => fromRow(table, raw))
  const first = async <T extends TableName>(table: T, statement: Statement): Promise<Tables[T] | null> => {
    const [raw] = await query(statement)
    return raw === undefined ? null : fromRow(table, raw)
  }

  return {
    get: (table, id) => first(table, statements.get[table]({ id })),
    jobByName: (name) => first('jobs', statements.jobByName({ name })),
    jobsByPrefix: (prefix, limit) =>
      all('jobs', statements.jobsByPrefix({ from: prefix, to: `${prefix}${lastCharacter}`, limit })),
    jobs: async ({ ended: asked, limit = jobsAtMost, before = Number.MAX_SAFE_INTEGER }) => {
      const ended = asked ? 1 : 0
      const any = asked === undefined
      const page = await query(
        any ? statements.jobs({ before, limit }) : statements.jobsByEnded({ ended, before, limit }),
      )
      const last = page.length === limit ? page.at(-1) : undefined
      if (last === undefined) return page.map((raw) => fromRow('jobs', raw))
      const tie = { at: last['created_at'] as number, nr: last['nr'] as number }
      const rest = await query(any ? statements.jobsTied(tie) : statements.jobsTiedByEnded({ ended, ...tie }))
      return [...page, ...rest].map((raw) => fromRow('jobs', raw))
    },
    jobsDue: (now, limit) => all('jobs', statements.jobsDue({ now, limit })),
    nextDue: async () => {
      const [raw] = await query(statements.nextDue({}))
      return (raw?.['due'] as number | null | undefined) ?? null
    },
    attemptsOf: (job) => all('attempts', statements.attemptsOf({ job })),
    attemptsAlive: () => all('attempts', statements.attemptsAlive({})),
    attemptsOfAgent: (agent, filter) =>
      all(
        'attempts',
        filter?.alive ? statements.attemptsAliveOfAgent({ agent }) : statements.attemptsOfAgent({ agent }),
      ),
    movesOf: (job) => all('moves', statements.movesOf({ job })),
    decisionsOf: (subject, { limit, before }) =>
      all(
        'decisions',
        before === undefined
          ? statements.decisionsOf({ subject, limit })
          : statements.decisionsBefore({ subject, before, limit }),
      ),
    lastDecision: (subject, policy) => first('decisions', statements.lastDecision({ subject, policy })),
    connections: () => all('connections', statements.connections({})),
    events: async (after, { subject, limit }) => {
      const rows = await query(
        subject === undefined ? statements.events({ after, limit }) : statements.eventsOf({ subject, after, limit }),
      )
      return rows.map((raw): EventRecord => ({ ...JSON.parse(raw['doc'] as string), seq: raw['seq'] as number }))
    },
  }
}
