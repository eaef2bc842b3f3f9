import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ToControl } from '../contract/agent.ts'
import type { AttemptRecord, JobRecord } from '../core/jobs/model.ts'
import { aJob, aMachine, anAttempt, aReport, now } from '../core/jobs/testing.ts'
import { openStore, type Store } from '../store/index.ts'
import { Agents } from './agents.ts'
import { openGateway } from './gateway.ts'
import { agentToken } from './keys.ts'

const key = Buffer.alloc(32, 3)
let store: Store
let agents: Agents
let heard: string[]
let closed: boolean
beforeEach(async () => {
  store = await openStore(':memory:', () => now)
  agents = new Agents(() => now)
  heard = []
  closed = false
  agents.listen({
    changed: () => {},
    arrived: (agent) => heard.push(`arrived ${agent}`),
    renew: (attempt, nonce) => heard.push(`renew ${attempt} ${nonce}`),
    log: () => 0,
  })
})
afterEach(() => store.close())

const remember = async (job: Partial<JobRecord>, ...attempts: AttemptRecord[]): Promise<void> => {
  const { version: _, ...row } = { ...aJob().build().job, ...job }
  await store.apply({
    changes: [
      { do: 'insert', table: 'jobs', row },
      ...attempts.map(({ version: _v, ...attempt }) => ({ do: 'insert', table: 'attempts', row: attempt }) as const),
    ],
    events: [],
  })
}
const open = () =>
  openGateway({ key, store, agents, stored: (job) => heard.push(`stored ${job}`), closed: () => closed })
const settle = () => new Promise((go) => setTimeout(go, 5))
const report = (token: number): ToControl => ({ t: 'report', machine: aMachine(), attempts: [aReport(token)] })

test('a token says which agent it is; any other is nobody', async () => {
  expect(await open().authenticate(agentToken(key, 'job.1'))).toBe('job.1')
  expect(await open().authenticate(agentToken(Buffer.alloc(32, 4), 'job.1'))).toBeNull()
  expect(await open().authenticate('job.1')).toBeNull()
})

describe('a connection', () => {
  test('what is said before it is known what is whose waits, in its order', async () => {
    await remember({}, anAttempt(1))
    const session = open().connected('job.1', { send: () => {}, close: () => {} })
    session.received(report(1))
    session.received({ t: 'renew', attempt: 'job.1', nonce: 'n1' })
    expect(heard).toEqual([])
    await settle()
    expect(heard).toEqual(['arrived job.1', 'renew job.1 n1'])
    expect(agents.heard(anAttempt(1)).report).toMatchObject({ token: 1 })
  })

  test('J-SAFE-2 of attempts that are gone nothing is heard', async () => {
    await remember({}, anAttempt(1, { state: 'gone' }))
    const sent: unknown[] = []
    const session = open().connected('job.1', { send: (message) => sent.push(message), close: () => {} })
    session.received(report(1))
    await settle()
    expect(agents.heard(anAttempt(1)).report).toBeNull()
    expect(sent[0]).toEqual({ t: 'superseded', attempt: 'job.1' })
  })

  test('one that broke before it was known what is whose is none', async () => {
    await remember({}, anAttempt(1))
    const session = open().connected('job.1', { send: () => {}, close: () => {} })
    session.received(report(1))
    session.closed()
    await settle()
    expect(heard).toEqual([])
  })

  test('a control plane that is closing takes none', async () => {
    await remember({}, anAttempt(1))
    closed = true
    open()
      .connected('job.1', { send: () => {}, close: () => {} })
      .received(report(1))
    await settle()
    expect(heard).toEqual([])
  })

  test('a store that cannot be read closes it, with the reason', async () => {
    const broken = { attemptsOfAgent: () => Promise.reject(new Error('gone')) } as unknown as Store
    const reasons: string[] = []
    openGateway({ key, store: broken, agents, stored: () => {}, closed: () => false }).connected('job.1', {
      send: () => {},
      close: (why) => reasons.push(why),
    })
    await settle()
    expect(reasons).toEqual(['the store could not be read'])
  })
})

describe('what an agent may fetch and store', () => {
  const hash = 'a'.repeat(64)
  const withWorkdir = { spec: { ...aJob().build().job.spec, workdir: hash }, current: 1 }

  test.each([
    ['its own job’s working directory', anAttempt(1), 'job.1', hash, true],
    ['another’s', anAttempt(1), 'job.2', hash, false],
    ['one that its job does not have', anAttempt(1), 'job.1', 'b'.repeat(64), false],
    ['its own once it is gone', anAttempt(1, { state: 'gone' }), 'job.1', hash, false],
  ] as const)('may it read: %s', async (_, attempt, agentId, workdir, expected) => {
    await remember(withWorkdir, attempt)
    expect(await open().mayRead(agentId, workdir)).toBe(expected)
  })

  test.each([
    ['outputs of the current attempt', 1, anAttempt(1), 'job.1', 'job.1', true],
    ['J-SAFE-2 outputs of one that is not current any more', 2, anAttempt(1), 'job.1', 'job.1', false],
    ['J-SAFE-2 outputs of one that was let go', 1, anAttempt(1, { state: 'ending' }), 'job.1', 'job.1', false],
    ['outputs of another’s attempt', 1, anAttempt(1), 'job.9', 'job.1', false],
    ['outputs of an attempt that there is not', 1, anAttempt(1), 'job.1', 'job.7', false],
  ] as const)('may it store: %s', async (_, current, attempt, agentId, id, expected) => {
    await remember({ current }, attempt)
    expect(await open().mayWrite(agentId, id)).toBe(expected)
  })

  test('outputs that arrived wake their job', async () => {
    await open().stored('job.1', 'job.1', 10)
    expect(heard).toEqual(['stored job'])
  })
})
