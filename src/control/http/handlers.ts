/** What each route does: the table's side of the wire joined to what the control plane can be asked. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import { portalError } from '../../contract/errors.ts'
import type { RouteName } from '../../contract/paths.ts'
import type { routes } from '../../contract/routes.ts'
import type { EventView, Wire } from '../../contract/schemas.ts'
import type { Asker } from '../../core/jobs/model.ts'
import type { AgentGateway, ControlApi, LogPiece, LogPosition } from './api.ts'
import { soFar, type Opened, type Outputs, type Workdirs } from './archives.ts'
import type { SentEvent, Streams } from './streams.ts'

type Routes = typeof routes
type PartOf<N extends RouteName, K extends string> =
  Routes[N] extends Readonly<Record<K, infer S extends z.ZodType>> ? Wire<z.output<S>> : undefined
type AnswerOf<N extends RouteName> = Routes[N] extends { readonly response: infer S extends z.ZodType }
  ? Wire<z.output<S>>
  : Routes[N]['gives'] extends 'json'
    ? unknown
    : void

/** A request whose parts were checked against the table, and who asks. */
interface Checked<N extends RouteName> {
  readonly params: PartOf<N, 'params'>
  readonly query: PartOf<N, 'query'>
  readonly body: PartOf<N, 'body'>
  /** who asks, as it is recorded */
  readonly by: Asker
  /** the agent that asks, on its own routes; else empty */
  readonly agent: string
  readonly lastEventId: string | null
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
}

export type Handlers = { readonly [N in RouteName]: (request: Checked<N>) => Promise<AnswerOf<N>> | AnswerOf<N> }

export interface HandlerParts {
  readonly api: ControlApi
  readonly agents: AgentGateway
  readonly workdirs: Workdirs
  readonly outputs: Outputs
  readonly streams: Streams
  readonly openapi: unknown
}

/** Streams write their answer themselves; the others give what becomes the JSON body. */
export function createHandlers({ api, agents, workdirs, outputs, streams, openapi }: HandlerParts): Handlers {
  const sendFile = async (outgoing: ServerResponse, opened: Opened, type: string) =>
    streams.bytes(outgoing, { type, bytes: opened.bytes }, opened.stream as AsyncIterable<Uint8Array>)

  return {
    health: () => api.health(),
    openapi: () => openapi,

    createJob: async ({ body, by }) => {
      if (body.workdir !== null && !(await workdirs.has(body.workdir)))
        throw portalError('workdir_not_found', { sha256: body.workdir })
      return api.createJob(body, by)
    },
    jobs: ({ query }) => api.jobs(query),
    job: ({ params }) => api.job(params.ref),
    explain: ({ params }) => api.explain(params.ref),
    checkpoints: ({ params }) => api.checkpoints(params.ref),
    suspend: ({ params, by }) => api.suspend(params.ref, by),
    resume: ({ params, body, by }) => api.resume(params.ref, body, by),
    move: ({ params, body, by }) => api.move(params.ref, body, by),
    stop: ({ params, body, by }) => api.stop(params.ref, body, by),

    readLog: async ({ params, query, outgoing }) => {
      await api.job(params.ref)
      const head = { type: 'application/octet-stream', bytes: null }
      await streams.bytes(outgoing, head, api.readLog(params.ref, positionOf(query.from)))
    },
    followLog: async ({ params, query, lastEventId, outgoing }) => {
      const { id } = await api.job(params.ref)
      const from = positionOf(lastEventId ?? query.from)
      await streams.events(outgoing, (signal) => logEvents(api.followLog(id, from, signal)))
    },
    readOutputs: async ({ params, query, outgoing }) => {
      const { archive, bytes, declared } = await api.outputsOf(params.ref)
      const path = query.path ?? null
      if (archive !== null && bytes !== null && !outputs.kept(archive)) await outputs.take(archive, bytes)
      const opened = archive === null ? null : await outputs.read(archive, path)
      if (opened === null)
        throw portalError('output_not_found', {
          job: params.ref,
          path: path === null ? 'yet' : isDeclared(path, declared) ? `${path} yet` : path,
          declared: declared.length > 0 ? declared : 'none',
        })
      await sendFile(outgoing, opened, 'application/x-tar')
    },

    jobEvents: async ({ params, query }) => {
      const { id } = await api.job(params.ref)
      return page(await api.events(query.after ?? 0, id, query.limit), query.after ?? 0)
    },
    followJobEvents: async ({ params, query, lastEventId, outgoing }) => {
      const { id } = await api.job(params.ref)
      const after = seqOf(lastEventId) ?? query.after ?? 0
      await streams.events(outgoing, (signal) => changes(api.followEvents(after, id, signal)))
    },
    events: async ({ query }) => page(await api.events(query.after ?? 0, null, query.limit), query.after ?? 0),
    followEvents: async ({ query, lastEventId, outgoing }) => {
      const after = seqOf(lastEventId) ?? query.after ?? null
      await streams.events(outgoing, (signal) => changes(api.followEvents(after, null, signal)))
    },

    hasWorkdir: async ({ params }) => {
      if (!(await workdirs.has(params.sha256))) throw portalError('workdir_not_found', { sha256: params.sha256 })
    },
    putWorkdir: ({ params, incoming }) => workdirs.receive(incoming, params.sha256),

    offers: ({ query }) => api.offers(query),
    connections: () => api.connections(),
    doctor: () => api.doctor(),
    shutdown: ({ by }) => api.shutdown(by),

    practice: () => api.practice(),
    practiceNotice: ({ body, by }) => api.playPractice({ do: 'notice', ...body }, by),
    practiceReclaim: ({ body, by }) => api.playPractice({ do: 'reclaim', ...body }, by),
    practiceWithdraw: ({ body, by }) => api.playPractice({ do: 'withdraw', ...body }, by),
    practicePrice: ({ body, by }) => api.playPractice({ do: 'price', ...body }, by),
    practiceCapacity: ({ body, by }) => api.playPractice({ do: 'capacity', ...body }, by),
    practiceQuota: ({ body, by }) => api.playPractice({ do: 'quota', ...body }, by),
    practiceLifetime: ({ body, by }) => api.playPractice({ do: 'lifetime', ...body }, by),
    practiceNoticeLength: ({ body, by }) => api.playPractice({ do: 'notice-length', ...body }, by),
    practiceReset: ({ by }) => api.playPractice({ do: 'reset' }, by),

    agentWorkdir: async ({ params, agent, outgoing }) => {
      if (!(await agents.mayRead(agent, params.sha256)))
        throw portalError('not_yours', { what: `a job with the working directory ${params.sha256}` })
      const opened = await workdirs.read(params.sha256)
      if (opened === null) throw portalError('workdir_not_found', { sha256: params.sha256 })
      await sendFile(outgoing, opened, 'application/octet-stream')
    },
    agentOutputs: async ({ params, query, agent, incoming }) => {
      const refuse = async () => {
        if (!(await agents.mayWrite(agent, params.id)))
          throw portalError('not_yours', { what: `the attempt ${params.id}` })
      }
      await refuse()
      if (query.so_far !== undefined) {
        const { bytes } = await outputs.receive(incoming, soFar(params.id), refuse)
        return { bytes }
      }
      const { bytes } = await outputs.receive(incoming, params.id, refuse)
      await outputs.remove(soFar(params.id))
      await agents.stored(agent, params.id, bytes)
      return { bytes }
    },
  }
}

/** Whether a path lies in a declared output, as both may be written. */
function isDeclared(path: string, declared: readonly string[]): boolean {
  const plain = (text: string) => text.replace(/^(\.\/)+/, '').replace(/\/+$/, '')
  const wanted = plain(path)
  return declared.map(plain).some((one) => wanted === one || wanted.startsWith(`${one}/`))
}

/** `TOKEN:OFFSET`; null: the beginning. */
function positionOf(text: string | null | undefined): LogPosition | null {
  if (text === null || text === undefined) return null
  const match = /^(\d{1,9}):(\d{1,15})$/.exec(text)
  if (!match) throw portalError('invalid_request', { place: 'last-event-id', problem: 'expected TOKEN:OFFSET' })
  return { token: Number(match[1]), offset: Number(match[2]) }
}

function seqOf(text: string | null): number | null {
  if (text === null) return null
  if (!/^\d{1,15}$/.test(text))
    throw portalError('invalid_request', { place: 'last-event-id', problem: 'expected the seq of an event' })
  return Number(text)
}

const page = (events: readonly EventView[], after: number) => ({ events, last: events.at(-1)?.seq ?? after })

async function* changes(events: AsyncIterable<EventView>): AsyncGenerator<SentEvent> {
  for await (const event of events) yield { id: String(event.seq), event: 'change', data: event }
}

async function* logEvents(pieces: AsyncIterable<LogPiece>): AsyncGenerator<SentEvent> {
  for await (const piece of pieces) {
    if (piece.is === 'end') {
      const { is: _, ...end } = piece
      yield { id: null, event: 'end', data: end }
      return
    }
    const { token, offset, bytes } = piece
    const data = isUtf8(bytes)
      ? { text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8') }
      : { base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') }
    yield { id: `${token}:${offset + bytes.byteLength}`, event: 'log', data }
  }
}
