import type { AttemptOrder, AttemptReport, MachineReport, ToAgent, ToControl, Want } from '../contract/agent.ts'
import type { AttemptRecord } from '../core/jobs/model.ts'
import type { Instant } from '../core/time/index.ts'
import { jobIdOf } from './logs.ts'

export interface Link {
  send(message: ToAgent): void
  close(reason: string): void
}

interface Agent {
  link: Link | null
  machine: MachineReport | null
  /** whether it has told all it knows since it connected: only then is the absence of an attempt an answer */
  reported: boolean
  heardAt: Instant
  readonly reports: Map<string, AttemptReport>
  /** attempts that it was told to begin over this connection, and has not told of yet */
  readonly unanswered: Set<string>
}

export interface AgentListener {
  /** something about this job may have changed */
  changed(jobId: string): void
  /** an agent came: its attempts are to be looked at, and its orders sent */
  arrived(agentId: string): void
  renew(attemptId: string, nonce: string): void
  log(attemptId: string, offset: number, bytes: Uint8Array): number
}

/** Every agent as far as this control plane has heard it: in memory only, since each tells all it knows when it connects. */
export class Agents {
  readonly #agents = new Map<string, Agent>()
  readonly #sent = new Map<string, string>()
  /** which agent an attempt was given to: what any other says of it is not heard */
  readonly #served = new Map<string, string>()
  readonly #since: Instant
  readonly #now: () => Instant
  #listener: AgentListener | null = null

  constructor(now: () => Instant) {
    this.#now = now
    this.#since = now()
  }

  listen(listener: AgentListener): void {
    this.#listener = listener
  }

  connected(agentId: string, link: Link): { received(message: ToControl): void; closed(): void } {
    const agent = this.#agent(agentId)
    agent.link?.close('another connection of this agent took over')
    agent.link = link
    agent.reported = false
    // what was sent over the connection before and is not in the first report has not arrived, and never will
    agent.unanswered.clear()
    agent.heardAt = this.#now()
    for (const key of this.#sent.keys()) if (key.startsWith(`${agentId} `)) this.#sent.delete(key)
    return {
      received: (message) => {
        if (agent.link !== link) return
        agent.heardAt = this.#now()
        this.#received(agentId, agent, message)
      },
      closed: () => {
        if (agent.link !== link) return
        agent.link = null
        agent.heardAt = this.#now()
        // also those that it had not told of yet: whoever waits for them has to look when it is unheard
        for (const [attempt, served] of this.#served) if (served === agentId) this.#listener?.changed(jobIdOf(attempt))
      },
    }
  }

  /** From now on this attempt's agent is heard. */
  serve(attempt: AttemptRecord): void {
    this.#served.set(attempt.id, attempt.agentId)
  }

  /** What is heard of an attempt. `machine` is null until its agent has told all since it connected. */
  heard(attempt: AttemptRecord): {
    readonly report: AttemptReport | null
    readonly machine: MachineReport | null
    readonly connected: boolean
    readonly unanswered: boolean
    readonly heardAt: Instant
  } {
    const agent = this.#agents.get(attempt.agentId)
    if (!agent) return { report: null, machine: null, connected: false, unanswered: false, heardAt: this.#since }
    const connected = agent.link !== null && agent.reported
    return {
      report: agent.reports.get(attempt.id) ?? null,
      machine: connected || !agent.link ? agent.machine : null,
      connected,
      unanswered: agent.unanswered.has(attempt.id),
      heardAt: agent.heardAt,
    }
  }

  /** Sends an order if it says something else than the last one on this connection. */
  order(attempt: AttemptRecord, jobVersion: number, want: Want | null): void {
    const agent = this.#agents.get(attempt.agentId)
    if (!agent?.link || want === null) return
    const key = `${attempt.agentId} ${attempt.id}`
    const said = JSON.stringify(want)
    if (this.#sent.get(key) === said) return
    this.#sent.set(key, said)
    if ((want.do === 'run' || want.do === 'prepare') && !agent.reports.has(attempt.id)) agent.unanswered.add(attempt.id)
    const order: AttemptOrder = { attempt: attempt.id, token: attempt.token, jobVersion, want }
    agent.link.send({ t: 'orders', attempts: [order] })
  }

  send(agentId: string, message: ToAgent): void {
    this.#agents.get(agentId)?.link?.send(message)
  }

  forget(attempt: AttemptRecord): void {
    const agent = this.#agents.get(attempt.agentId)
    agent?.reports.delete(attempt.id)
    agent?.unanswered.delete(attempt.id)
    this.#served.delete(attempt.id)
    this.#sent.delete(`${attempt.agentId} ${attempt.id}`)
    if (agent && agent.link === null && attempt.agentId === attempt.id) this.#agents.delete(attempt.agentId)
  }

  closeAll(reason: string): void {
    for (const { link } of this.#agents.values()) link?.close(reason)
  }

  #received(agentId: string, agent: Agent, message: ToControl): void {
    switch (message.t) {
      case 'hello':
        return
      case 'report':
        return this.#reported(agentId, agent, message.machine, message.attempts)
      case 'log': {
        if (!this.#owns(agentId, message.attempt)) return
        const upTo = this.#listener?.log(message.attempt, message.offset, Buffer.from(message.data, 'base64')) ?? 0
        agent.link?.send({ t: 'log-ack', attempt: message.attempt, upTo })
        const report = agent.reports.get(message.attempt)
        if (report?.exit) this.#listener?.changed(jobIdOf(message.attempt))
        return
      }
      case 'renew':
        if (this.#owns(agentId, message.attempt)) this.#listener?.renew(message.attempt, message.nonce)
    }
  }

  #reported(agentId: string, agent: Agent, machine: MachineReport, attempts: readonly AttemptReport[]): void {
    const first = !agent.reported
    const noticeChanged = JSON.stringify(agent.machine?.notice) !== JSON.stringify(machine.notice)
    agent.machine = machine
    agent.reported = true
    const touched = new Set<string>()
    const told = new Set<string>()
    for (const report of attempts) {
      if (!this.#owns(agentId, report.attempt)) {
        // given up long ago, or never given to it: it ends, whatever it thinks, and is forgotten
        agent.link?.send({ t: 'superseded', attempt: report.attempt })
        agent.link?.send({
          t: 'orders',
          attempts: [{ attempt: report.attempt, token: report.token, jobVersion: report.version, want: { do: 'end' } }],
        })
        continue
      }
      told.add(report.attempt)
      agent.unanswered.delete(report.attempt)
      const before = agent.reports.get(report.attempt)
      agent.reports.set(report.attempt, report)
      if (first || noticeChanged || !before || matters(before) !== matters(report)) touched.add(report.attempt)
    }
    for (const known of agent.reports.keys())
      if (!told.has(known)) {
        agent.reports.delete(known)
        touched.add(known)
      }
    if (first) this.#listener?.arrived(agentId)
    for (const attempt of touched) this.#listener?.changed(jobIdOf(attempt))
  }

  #owns(agentId: string, attemptId: string): boolean {
    return this.#served.get(attemptId) === agentId
  }

  #agent(agentId: string): Agent {
    let agent = this.#agents.get(agentId)
    if (!agent) {
      agent = {
        link: null,
        machine: null,
        reported: false,
        heardAt: this.#now(),
        reports: new Map(),
        unanswered: new Set(),
      }
      this.#agents.set(agentId, agent)
    }
    return agent
  }
}

/** What of a report can change a step or a verdict; samples and counters alone are looked at when due. */
const matters = ({ sample: _s, progress: _p, outputAt: _o, logBytes, exit, ...rest }: AttemptReport): string =>
  JSON.stringify({ ...rest, exit, logBytes: exit ? logBytes : 0 })
