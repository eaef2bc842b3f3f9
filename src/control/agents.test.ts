import { beforeEach, describe, expect, test } from 'vitest'
import type { AttemptReport, ToAgent, ToControl, Want } from '../contract/agent.ts'
import { aMachine, anAttempt, anExit, aReport } from '../core/jobs/testing.ts'
import { Agents } from './agents.ts'

const attempt = anAttempt(1)
const hosted = anAttempt(2, { agentId: 'desk' })
const run = { do: 'probe', move: 'm1' } as const satisfies Want

let now: number
let agents: Agents
let told: string[]
beforeEach(() => {
  now = 1000
  told = []
  agents = new Agents(() => now)
  agents.listen({
    changed: (job) => told.push(`changed ${job}`),
    arrived: (agent) => told.push(`arrived ${agent}`),
    renew: (id, nonce) => told.push(`renew ${id} ${nonce}`),
    log: (id, offset, bytes) => {
      told.push(`log ${id} ${offset} ${Buffer.from(bytes).toString()}`)
      return offset + bytes.length
    },
  })
})

const connect = (agentId = attempt.agentId) => {
  const sent: ToAgent[] = []
  const closed: string[] = []
  const session = agents.connected(agentId, { send: (message) => sent.push(message), close: (why) => closed.push(why) })
  return {
    sent,
    closed,
    says: (message: ToControl) => session.received(message),
    reports: (...attempts: AttemptReport[]) => session.received({ t: 'report', machine: aMachine(), attempts }),
    goes: () => session.closed(),
  }
}

describe('what is heard of an attempt', () => {
  test('nothing of an agent that never came; it is silent since this control plane looks', () => {
    now = 5000
    expect(agents.heard(attempt)).toMatchObject({ report: null, machine: null, connected: false, heardAt: 1000 })
  })

  test('an agent that is connected and has not told all it knows is not heard yet: a missing attempt says nothing', () => {
    agents.serve(attempt)
    connect()
    expect(agents.heard(attempt)).toMatchObject({ connected: false, machine: null })
  })

  test('its first report: it has arrived, and its job may have changed', () => {
    agents.serve(attempt)
    connect().reports(aReport(1))
    expect(agents.heard(attempt)).toMatchObject({ connected: true, report: { token: 1 }, machine: { cpus: 2 } })
    expect(told).toEqual([`arrived ${attempt.agentId}`, 'changed job'])
  })

  test('what was told before a connection broke stays known, and when it was heard last', () => {
    agents.serve(attempt)
    const agent = connect()
    agent.reports(aReport(1))
    now = 9000
    agent.goes()
    now = 20_000
    expect(agents.heard(attempt)).toMatchObject({ connected: false, report: { token: 1 }, heardAt: 9000 })
    expect(told.at(-1)).toBe('changed job')
  })

  test('J-LOST-1 a connection that breaks before an attempt was told of wakes those who wait for it', () => {
    agents.serve(attempt)
    const agent = connect()
    agent.reports()
    told.length = 0
    agent.goes()
    expect(told).toEqual(['changed job'])
  })

  test('an attempt that is not told of any more is gone from it', () => {
    agents.serve(attempt)
    const agent = connect()
    agent.reports(aReport(1))
    agent.reports()
    expect(agents.heard(attempt)).toMatchObject({ connected: true, report: null })
    expect(told.at(-1)).toBe('changed job')
  })

  test('what only counts wakes nobody; a notice, a phase and an exit do', () => {
    agents.serve(attempt)
    const agent = connect()
    agent.reports(aReport(1))
    told = []
    agent.reports(aReport(1, { progress: { turns: 99, done: null, total: null }, logBytes: 5, outputAt: 7 }))
    expect(told).toEqual([])
    agent.reports(aReport(1, { phase: 'saving' }))
    agent.reports(aReport(1, { phase: 'ended', exit: anExit('exited'), logBytes: 5 }))
    agent.reports(aReport(1, { phase: 'ended', exit: anExit('exited'), logBytes: 6 }))
    expect(told).toEqual(['changed job', 'changed job', 'changed job'])
    agent.says({ t: 'report', machine: aMachine({ notice: { seenAt: 1, endsAt: 2 } }), attempts: [aReport(1)] })
    expect(told).toHaveLength(4)
  })
})

describe('an agent speaks only for the attempts that were given to it', () => {
  test('J-SAFE-2 a report of another’s is not heard, and is answered with its end', () => {
    agents.serve(attempt)
    connect().reports(aReport(1))
    const liar = connect('job.9')
    liar.reports(aReport(1, { phase: 'ended', exit: anExit('exited') }))
    expect(agents.heard(attempt).report).toMatchObject({ exit: null })
    expect(liar.sent).toEqual([
      { t: 'superseded', attempt: 'job.1' },
      { t: 'orders', attempts: [{ attempt: 'job.1', token: 1, jobVersion: 1, want: { do: 'end' } }] },
    ])
  })

  test('J-SAFE-2 nor is its log, nor what it asks for', () => {
    agents.serve(attempt)
    const liar = connect('job.9')
    liar.says({ t: 'log', attempt: 'job.1', offset: 0, data: Buffer.from('lies').toString('base64') })
    liar.says({ t: 'renew', attempt: 'job.1', nonce: 'n' })
    expect(told).toEqual([])
    expect(liar.sent).toEqual([])
  })

  test('J-SAFE-2 an attempt that was given up long ago is told to end when its agent comes back', () => {
    const old = connect('desk')
    old.reports({ ...aReport(2), version: 7 })
    expect(old.sent).toEqual([
      { t: 'superseded', attempt: 'job.2' },
      { t: 'orders', attempts: [{ attempt: 'job.2', token: 2, jobVersion: 7, want: { do: 'end' } }] },
    ])
  })

  test('its own log is taken and acknowledged', () => {
    agents.serve(attempt)
    const agent = connect()
    agent.says({ t: 'log', attempt: 'job.1', offset: 3, data: Buffer.from('line').toString('base64') })
    expect(told).toEqual(['log job.1 3 line'])
    expect(agent.sent).toEqual([{ t: 'log-ack', attempt: 'job.1', upTo: 7 }])
  })

  test('J-LEASE-2 its own lease is asked for', () => {
    agents.serve(attempt)
    connect().says({ t: 'renew', attempt: 'job.1', nonce: 'n7' })
    expect(told).toEqual(['renew job.1 n7'])
  })
})

describe('orders', () => {
  test('are sent once a connection, and again over the next', () => {
    agents.serve(attempt)
    const first = connect()
    agents.order(attempt, 4, run)
    agents.order(attempt, 5, run)
    expect(first.sent).toEqual([{ t: 'orders', attempts: [{ attempt: 'job.1', token: 1, jobVersion: 4, want: run }] }])
    const second = connect()
    agents.order(attempt, 5, run)
    expect(second.sent).toHaveLength(1)
    expect(first.sent).toHaveLength(1)
  })

  test('are sent when they say something new, also when that was said before', () => {
    const agent = connect()
    agents.order(attempt, 4, run)
    agents.order(attempt, 5, { do: 'end' })
    agents.order(attempt, 6, run)
    expect(agent.sent.map((message) => (message.t === 'orders' ? message.attempts[0]?.jobVersion : 0))).toEqual([
      4, 5, 6,
    ])
  })

  test('nothing is nothing, and nobody is told who is not there', () => {
    agents.order(attempt, 4, run)
    const agent = connect()
    agents.order(attempt, 4, null)
    expect(agent.sent).toEqual([])
  })

  test('of one agent’s attempts each has its own', () => {
    const other = anAttempt(3, { agentId: 'desk' })
    const agent = connect('desk')
    agents.order(hosted, 1, run)
    agents.order(other, 1, run)
    expect(agent.sent).toHaveLength(2)
  })
})

describe('connections', () => {
  test('a new one of the same agent takes over: what the old one still says is not heard', () => {
    agents.serve(attempt)
    const old = connect()
    old.reports(aReport(1))
    const young = connect()
    expect(old.closed).toHaveLength(1)
    old.reports(aReport(1, { phase: 'ended', exit: anExit('exited') }))
    old.goes()
    young.reports(aReport(1))
    expect(agents.heard(attempt)).toMatchObject({ connected: true, report: { exit: null } })
  })

  test('J-SAFE-2 an attempt that was just told to begin is not absent because nothing was said of it yet', () => {
    agents.serve(hosted)
    const host = connect('desk')
    host.reports()
    expect(agents.heard(hosted)).toMatchObject({ connected: true, report: null, unanswered: false })
    agents.order(hosted, 1, { do: 'prepare', start: {} as never, slot: 1 })
    expect(agents.heard(hosted)).toMatchObject({ report: null, unanswered: true })
    host.reports(aReport(2))
    host.reports()
    expect(agents.heard(hosted)).toMatchObject({ report: null, unanswered: false })
  })

  test('what a new connection does not tell of has never arrived', () => {
    agents.serve(hosted)
    connect('desk').reports()
    agents.order(hosted, 1, { do: 'prepare', start: {} as never, slot: 1 })
    connect('desk').reports()
    expect(agents.heard(hosted)).toMatchObject({ connected: true, report: null, unanswered: false })
  })

  test('an attempt that is gone is forgotten, with its agent where it was its own', () => {
    agents.serve(attempt)
    const agent = connect()
    agent.reports(aReport(1))
    agent.goes()
    agents.forget(attempt)
    expect(agents.heard(attempt)).toMatchObject({ report: null, heardAt: 1000 })
  })

  test('all are closed at once', () => {
    const both = [connect('a'), connect('b')]
    agents.closeAll('bye')
    expect(both.map(({ closed }) => closed)).toEqual([['bye'], ['bye']])
  })
})
