/**
 * The lean half of the route table: what a client needs at run time, and nothing that costs start-up time. The schemas
 * that belong to each name stand in `routes.ts`, which clients import by type only.
 */

/** Who may call: `anyone`; a `person` with the token of the data directory; an `agent` with the token of its machine. */
export type Role = 'anyone' | 'person' | 'agent'

export interface Address {
  readonly method: 'GET' | 'POST' | 'PUT' | 'HEAD'
  /** `:name` is filled from the request's params */
  readonly path: string
  readonly role: Role
  readonly takes: 'nothing' | 'json' | 'bytes'
  /** `sse`: server-sent events, resumable by Last-Event-ID */
  readonly gives: 'nothing' | 'json' | 'bytes' | 'sse'
  readonly status: 200 | 201 | 202 | 204
  /** shares its path with a stream: chosen by `?once=true`, which gives what there is as JSON */
  readonly once?: true
}

const get = { method: 'GET', role: 'person', takes: 'nothing', gives: 'json', status: 200 } as const
const post = { method: 'POST', role: 'person', takes: 'json', gives: 'json', status: 200 } as const
const ask = { ...post, status: 202 } as const

export const paths = {
  health: { ...get, path: '/api/health', role: 'anyone' },
  openapi: { ...get, path: '/api/openapi.json', role: 'anyone' },

  createJob: { ...post, path: '/api/jobs', status: 201 },
  jobs: { ...get, path: '/api/jobs' },
  job: { ...get, path: '/api/jobs/:ref' },
  explain: { ...get, path: '/api/jobs/:ref/explain' },
  checkpoints: { ...get, path: '/api/jobs/:ref/checkpoints' },
  suspend: { ...ask, path: '/api/jobs/:ref/suspend' },
  resume: { ...ask, path: '/api/jobs/:ref/resume' },
  move: { ...ask, path: '/api/jobs/:ref/move' },
  stop: { ...ask, path: '/api/jobs/:ref/stop' },

  readLog: { ...get, path: '/api/jobs/:ref/log', gives: 'bytes' },
  followLog: { ...get, path: '/api/jobs/:ref/log/follow', gives: 'sse' },
  readOutputs: { ...get, path: '/api/jobs/:ref/outputs', gives: 'bytes' },
  jobEvents: { ...get, path: '/api/jobs/:ref/events', once: true },
  followJobEvents: { ...get, path: '/api/jobs/:ref/events', gives: 'sse' },
  events: { ...get, path: '/api/events', once: true },
  followEvents: { ...get, path: '/api/events', gives: 'sse' },

  hasWorkdir: { ...get, method: 'HEAD', path: '/api/workdirs/:sha256', gives: 'nothing' },
  putWorkdir: { ...get, method: 'PUT', path: '/api/workdirs/:sha256', takes: 'bytes' },

  offers: { ...get, path: '/api/offers' },
  connections: { ...get, path: '/api/connections' },
  doctor: { ...get, path: '/api/doctor' },
  shutdown: { ...ask, path: '/api/shutdown' },

  practice: { ...get, path: '/api/practice' },
  practiceNotice: { ...post, path: '/api/practice/notice' },
  practiceReclaim: { ...post, path: '/api/practice/reclaim' },
  practiceWithdraw: { ...post, path: '/api/practice/withdraw' },
  practicePrice: { ...post, path: '/api/practice/price' },
  practiceCapacity: { ...post, path: '/api/practice/capacity' },
  practiceQuota: { ...post, path: '/api/practice/quota' },
  practiceLifetime: { ...post, path: '/api/practice/lifetime' },
  practiceNoticeLength: { ...post, path: '/api/practice/notice-length' },
  practiceReset: { ...post, path: '/api/practice/reset' },

  agentWorkdir: { ...get, path: '/api/agent/workdirs/:sha256', role: 'agent', gives: 'bytes' },
  agentOutputs: { ...get, method: 'PUT', path: '/api/agent/attempts/:id/outputs', role: 'agent', takes: 'bytes' },
} as const satisfies Record<string, Address>

export type RouteName = keyof typeof paths

/** Where an agent opens its WebSocket; it speaks `contract/agent.ts`. */
export const agentSocketPath = '/api/agent'
