import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { migrations } from '../migrations.ts'
import { statementsFor } from '../statements.ts'
import { sqliteDialect } from './dialect.ts'

/** Cost follows what is due: whatever the loop asks often goes by an index, and needs no sorting. */
const db = new DatabaseSync(':memory:')
for (const { up } of migrations) for (const sql of up('sqlite')) db.exec(sql)
const statements = statementsFor(sqliteDialect, { rowLocks: false })

const asked = {
  jobByName: statements.jobByName({ name: 'a' }),
  jobsByPrefix: statements.jobsByPrefix({ from: 'a', to: 'b', limit: 1 }),
  jobs: statements.jobs({ before: 1, limit: 1 }),
  jobsByEnded: statements.jobsByEnded({ ended: 0, before: 1, limit: 1 }),
  jobsTied: statements.jobsTied({ at: 1, nr: 1 }),
  jobsTiedByEnded: statements.jobsTiedByEnded({ ended: 0, at: 1, nr: 1 }),
  jobsDue: statements.jobsDue({ now: 1, limit: 1 }),
  nextDue: statements.nextDue({}),
  attemptsOf: statements.attemptsOf({ job: 'a' }),
  attemptsAlive: statements.attemptsAlive({}),
  attemptsOfAgent: statements.attemptsOfAgent({ agent: 'a' }),
  attemptsAliveOfAgent: statements.attemptsAliveOfAgent({ agent: 'a' }),
  movesOf: statements.movesOf({ job: 'a' }),
  decisionsOf: statements.decisionsOf({ subject: 'a', limit: 1 }),
  decisionsBefore: statements.decisionsBefore({ subject: 'a', before: 'b', limit: 1 }),
  lastDecision: statements.lastDecision({ subject: 'a', policy: 'b' }),
  events: statements.events({ after: 1, limit: 1 }),
  eventsOf: statements.eventsOf({ subject: 'a', after: 1, limit: 1 }),
  get: statements.get.jobs({ id: 'a' }),
}

test.each(Object.entries(asked))('%s goes by an index and sorts nothing', (_name, { sql, parameters }) => {
  const steps = db.prepare(`explain query plan ${sql}`).all(...parameters) as { readonly detail: string }[]
  expect(steps.length).toBeGreaterThan(0)
  for (const { detail } of steps)
    expect(detail).toMatch(
      /^(SEARCH|SCALAR SUBQUERY|SCAN (attempts|jobs) USING (COVERING )?INDEX (attempts_alive|jobs_due))/,
    )
})
