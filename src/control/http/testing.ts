/** For tests: a control plane in memory behind the real server, and what is needed to talk to it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { ToAgent, ToControl } from '../../contract/agent.ts'
import { createClient, type Client } from '../../contract/client.ts'
import { portalError } from '../../contract/errors.ts'
import type { PracticeAct, PracticeView } from '../../contract/practice.ts'
import type { EventView, JobView } from '../../contract/schemas.ts'
import type { AgentGateway, AgentLink, ControlApi, LogPiece } from './api.ts'
import { carriedAt } from './archives.ts'
import { createServer, type HttpServer, type ServerOptions } from './server.ts'

export const token = 'person-token-of-the-tests'
export const agentToken = 'agent-token-of-the-tests'

/** What the tests look into and turn. */
export interface Memory {
  readonly jobs: Map<string, JobView>
  readonly events: EventView[]
  /** the log of attempt 1 of every job, and whether the job has ended */
  readonly log: { bytes: Buffer; ended: boolean }
  readonly acts: PracticeAct[]
  readonly said: ToControl[]
  readonly links: AgentLink[]
  /** what a checkpoint of any job carries of outputs */
  carried: AsyncIterable<Uint8Array> | null
  readonly stored: { agentId: string; attemptId: string; bytes: number }[]
  /** how many sessions of agents were closed */
  closedSessions: number
  /** whether the attempt `job-1.1` is still accepted */
  accepted: boolean
  /** how many pieces of logs were pulled */
  pulled: number
  write(text: string | Uint8Array): void
  end(): void
  tell(kind: string, subject?: string): void
}

export interface Served {
  readonly server: HttpServer
  readonly client: Client
  readonly memory: Memory
  readonly folder: string
  /** lines of the request log */
  readonly logged: Record<string, unknown>[]
  /** Cuts every stream, as a proxy or a restart would. */
  cut(): void
  close(): Promise<void>
}

export async function serveMemory(options: Partial<ServerOptions> = {}): Promise<Served> {
  const folder = await mkdtemp(join(tmpdir(), 'portal-http-'))
  const { memory, api, agents } = createMemory()
  const logged: Record<string, unknown>[] = []
  const log = pino({ base: null }, { write: (line) => void logged.push(JSON.parse(line) as Record<string, unknown>) })
  const open = new Set<AbortController>()
  const cuttable = async function* <T>(source: AsyncIterable<T>): AsyncGenerator<T> {
    const controller = new AbortController()
    open.add(controller)
    try {
      for await (const value of source) {
        controller.signal.throwIfAborted()
        yield value
      }
    } finally {
      open.delete(controller)
    }
  }
  const server = await createServer({
    api: { ...api, followLog: (...args) => cuttable(api.followLog(...args)) },
    agents,
    token,
    person: 'tester',
    version: '1.2.3',
    folders: { workdirs: join(folder, 'workdirs'), outputs: join(folder, 'outputs') },
    log,
    verifyAnswers: true,
    ...options,
  })
  return {
    server,
    client: createClient({ url: server.url, token }),
    memory,
    folder,
    logged,
    cut: () => {
      for (const controller of open) controller.abort()
    },
    close: async () => {
      await server.close(200)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export function createMemory(): { memory: Memory; api: ControlApi; agents: AgentGateway } {
  let changed = Promise.withResolvers<void>()
  const wake = () => {
    changed.resolve()
    changed = Promise.withResolvers<void>()
  }
  const memory: Memory = {
    jobs: new Map(),
    events: [],
    log: { bytes: Buffer.alloc(0), ended: false },
    acts: [],
    said: [],
    links: [],
    carried: null,
    stored: [],
    closedSessions: 0,
    accepted: true,
    pulled: 0,
    write(text) {
      memory.log.bytes = Buffer.concat([memory.log.bytes, Buffer.from(text as string)])
      wake()
    },
    end() {
      memory.log.ended = true
      wake()
    },
    tell(kind, subject = 'job-1') {
      const seq = memory.events.length + 1
      memory.events.push({ seq, at: 1_000 + seq, subject, kind, by: 'tester', why: null, facts: {} })
      wake()
    },
  }

  const find = (ref: string): JobView => {
    const job = [...memory.jobs.values()].find(({ id, name }) => id === ref || name === ref)
    if (!job) throw portalError('job_not_found', { ref, nearest: [...memory.jobs.values()].map((j) => j.name) })
    return job
  }
  const asked = (ref: string) => ({ job: find(ref), after: memory.events.length })
  const until = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true })
      void changed.promise.then(resolve)
    })

  const api: ControlApi = {
    health: () => ({ ok: true, version: '1.2.3', installation: 'i-1', pid: process.pid, startedAt: 1 }),
    createJob: async (request) => {
      const name = request.name ?? `job-${memory.jobs.size + 1}-name`
      if ([...memory.jobs.values()].some((job) => job.name === name)) throw portalError('name_taken', { name })
      const job = jobView(`job-${memory.jobs.size + 1}`, name, request.command)
      memory.jobs.set(job.id, job)
      memory.tell('created', job.id)
      return job
    },
    jobs: async ({ limit }) => ({ jobs: [...memory.jobs.values()].slice(0, limit), more: memory.jobs.size > limit }),
    job: async (ref) => find(ref),
    explain: async (ref) => {
      const { id, name, state } = find(ref)
      return { job: id, name, state, sentence: 'it runs', why: null, decisions: [], events: [], next: null }
    },
    checkpoints: async (ref) => ({
      job: find(ref).id,
      method: null,
      checkpoints: [],
      refused: [],
      probedAt: null,
    }),
    suspend: async (ref) => asked(ref),
    resume: async (ref) => asked(ref),
    move: async (ref, { on }) => {
      const job = find(ref)
      if (on === 'nowhere')
        throw portalError('checkpoint_refused', {
          job: job.name,
          count: 1,
          refused: [{ path: 'state.sock', type: 'socket', reason: 'it belongs to this machine', advice: 'close it' }],
        })
      return asked(ref)
    },
    stop: async (ref) => asked(ref),
    async *readLog(_ref, from) {
      yield memory.log.bytes.subarray(from?.offset ?? 0)
    },
    async *followLog(_ref, from, signal): AsyncGenerator<LogPiece> {
      let offset = from?.offset ?? 0
      while (!signal.aborted) {
        const bytes = memory.log.bytes.subarray(offset, offset + 65_536)
        if (bytes.length > 0) {
          memory.pulled++
          yield { is: 'log', token: 1, offset, bytes }
          offset += bytes.length
        } else if (memory.log.ended) {
          yield {
            is: 'end',
            state: 'succeeded',
            exit: { code: 0, signal: null, at: 5 },
            why: null,
            resumableUntil: null,
          }
          return
        } else await until(signal)
      }
    },
    events: async (after, subject, limit) =>
      memory.events.filter((e) => e.seq > after && (subject === null || e.subject === subject)).slice(0, limit),
    async *followEvents(after, subject, signal) {
      let seen = after ?? memory.events.length
      while (!signal.aborted) {
        const next = memory.events.find((e) => e.seq > seen && (subject === null || e.subject === subject))
        if (next) {
          seen = next.seq
          yield next
        } else await until(signal)
      }
    },
    outputsOf: async (ref) => ({
      archive: memory.carried ? carriedAt(`${find(ref).id}.1`, 3) : `${find(ref).id}.1`,
      bytes: memory.carried,
      declared: ['out'],
    }),
    offers: async () => ({ at: 1, offers: [], failed: [] }),
    connections: async () => ({ connections: [] }),
    doctor: async () => ({ checks: [] }),
    shutdown: async () => ({ jobs: [], sentence: 'nothing runs' }),
    practice: async () => emptyPractice,
    playPractice: async (act) => {
      memory.acts.push(act)
      return emptyPractice
    },
  }

  const agents: AgentGateway = {
    authenticate: async (shown) => (shown === agentToken ? 'agent-1' : null),
    connected: (_agentId, link) => {
      memory.links.push(link)
      return {
        received: (message) => {
          memory.said.push(message)
          link.send({ t: 'log-ack', attempt: 'job-1.1', upTo: 1 } satisfies ToAgent)
        },
        closed: () => void memory.closedSessions++,
      }
    },
    mayRead: async () => memory.accepted,
    mayWrite: async (_agentId, attemptId) => memory.accepted && attemptId === 'job-1.1',
    stored: async (agentId, attemptId, bytes) => void memory.stored.push({ agentId, attemptId, bytes }),
  }
  return { memory, api, agents }
}

const emptyPractice: PracticeView = { market: [], quotas: [], machines: [] }

export const jobView = (id: string, name: string, command: readonly string[]): JobView => ({
  id,
  name,
  state: 'running',
  stateSince: 1,
  why: null,
  command,
  createdAt: 1,
  attempt: 1,
  offer: 'this-machine',
  market: 'owned',
  on: null,
  pinned: false,
  narrowed: false,
  progress: null,
  ran: 0,
  spent: { amount: '0.00', currency: 'USD' },
  checkpoint: null,
  unreachableSince: null,
  exit: null,
  resumableUntil: null,
  expiresAt: null,
  wish: null,
  move: null,
  refused: [],
  warnings: [],
})
