/**
 * The typed client: a method for each route of the table, its types derived from the schemas, which it never loads.
 * Plain node:http, since it starts three times as fast as fetch, and every command pays for it.
 */
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { z } from 'zod'
import { PortalError, portalError, portalErrorFrom } from './errors.ts'
import { paths, type Address, type RouteName } from './paths.ts'
import type { routes } from './routes.ts'
import type { Sent, Wire } from './schemas.ts'
import { readEvents } from './sse.ts'

type Routes = typeof routes
/** A part of a request, optional where everything in it is. */
type Part<N extends RouteName, K extends 'params' | 'query' | 'body'> =
  Routes[N] extends Readonly<Record<K, infer S extends z.ZodType>>
    ? {} extends Sent<S>
      ? { readonly [P in K]?: Sent<S> }
      : { readonly [P in K]: Sent<S> }
    : {}
type Upload<N extends RouteName> = Routes[N] extends { readonly upload: unknown }
  ? { readonly upload: Readable | Uint8Array }
  : {}

export interface CallOptions {
  readonly signal?: AbortSignal
  /** ms until an answer must have begun; default 30 s */
  readonly timeoutMs?: number
}

export interface FollowOptions {
  readonly signal?: AbortSignal
  /** where to go on: the id of the last event seen */
  readonly lastEventId?: string
  /** for how long in a row to try to get a broken stream back, ms; default 60 s; 0: not at all */
  readonly retryForMs?: number
  /** called once each time the stream breaks and is tried again */
  readonly onInterrupted?: (error: PortalError) => void
}

type EventsOf<N extends RouteName> = Routes[N] extends { readonly events: infer E }
  ? {
      [K in keyof E & string]: {
        readonly event: K
        readonly id: string | null
        readonly data: E[K] extends z.ZodType ? Wire<z.output<E[K]>> : never
      }
    }[keyof E & string]
  : never

export type ClientRequestOf<N extends RouteName> = Part<N, 'params'> & Part<N, 'query'> & Part<N, 'body'> & Upload<N>
type OptionsOf<N extends RouteName> = Routes[N]['gives'] extends 'sse' ? FollowOptions : CallOptions
type AnswerOf<N extends RouteName> = Routes[N]['gives'] extends 'sse'
  ? AsyncGenerator<EventsOf<N>>
  : Routes[N]['gives'] extends 'bytes'
    ? Promise<IncomingMessage>
    : Routes[N]['gives'] extends 'nothing'
      ? Promise<boolean>
      : Routes[N] extends { readonly response: infer S extends z.ZodType }
        ? Promise<Wire<z.output<S>>>
        : Promise<unknown>

/**
 * A method for each route. JSON answers come as values, bytes as a stream to be read or destroyed, `nothing` as whether it
 * is there, streams of events as an async generator that gets itself back by Last-Event-ID when it breaks.
 * All throw PortalError; `control_plane_unreachable` when nobody answers.
 */
export type Client = {
  readonly [N in RouteName]: {} extends ClientRequestOf<N>
    ? (request?: ClientRequestOf<N> & OptionsOf<N>) => AnswerOf<N>
    : (request: ClientRequestOf<N> & OptionsOf<N>) => AnswerOf<N>
}

interface AnyRequest extends CallOptions, FollowOptions {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  readonly upload?: Readable | Uint8Array
}

export interface ClientTarget {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  /** null: only what needs none */
  readonly token: string | null
}

/** @param target where the control plane is; `reachHome` of `contract/home.ts` finds it. */
export function createClient(target: ClientTarget): Client {
  const call =
    (name: RouteName) =>
    (request: AnyRequest = {}) => {
      const address: Address = paths[name]
      if (address.gives === 'sse') return follow(target, address, request)
      return answer(target, address, request)
    }
  return Object.fromEntries((Object.keys(paths) as RouteName[]).map((name) => [name, call(name)])) as unknown as Client
}

/** The bytes of an event of a log. */
export const logBytes = (data: { readonly text: string } | { readonly base64: string }): Buffer =>
  'text' in data ? Buffer.from(data.text, 'utf8') : Buffer.from(data.base64, 'base64')

async function answer(target: ClientTarget, address: Address, request: AnyRequest): Promise<unknown> {
  const response = await send(target, address, request, {})
  const status = response.statusCode ?? 0
  if (address.gives === 'nothing') {
    response.resume()
    // an answer to HEAD has no body to read an error from
    if (status === 404) return false
    if (status < 300) return true
    throw status === 401
      ? portalError('unauthorized', {})
      : portalError('protocol_unknown', { url: target.url, problem: `status ${status}` })
  }
  if (status >= 300) throw portalErrorFrom(await readJson(target, response), status, target.url)
  if (address.gives === 'bytes') return response
  const value = await readJson(target, response)
  if (value === null) throw portalError('protocol_unknown', { url: target.url, problem: 'its answer is not JSON' })
  return value
}

async function* follow(
  target: ClientTarget,
  address: Address,
  request: AnyRequest,
): AsyncGenerator<{ event: string; id: string | null; data: unknown }> {
  let lastId = request.lastEventId ?? null
  let brokenSince: number | null = null
  let pause = 50
  for (;;) {
    try {
      const response = await send(target, address, request, lastId === null ? {} : { 'last-event-id': lastId })
      const status = response.statusCode ?? 0
      if (status !== 200) throw portalErrorFrom(await readJson(target, response), status, target.url)
      response.setEncoding('utf8')
      // the server gives a sign of life every 15 s: a connection that is silent for three of them is dead
      response.socket.setTimeout(45_000, () => response.destroy(new Error('no sign of life for 45 s')))
      try {
        for await (const raw of readEvents(response as AsyncIterable<string>)) {
          brokenSince = null
          pause = 50
          if (raw === null) continue
          lastId = raw.id ?? lastId
          yield { event: raw.event, id: raw.id, data: JSON.parse(raw.data) as unknown }
          if (raw.event === 'end') return
        }
      } finally {
        response.destroy()
      }
      throw unreachable(target, 'the stream was cut')
    } catch (error) {
      if (request.signal?.aborted) return
      const told = error instanceof PortalError ? error : unreachable(target, reasonOf(error))
      const retryFor = request.retryForMs ?? 60_000
      if (told.exitCode !== 5 || retryFor === 0) throw told
      const now = performance.now()
      if (brokenSince === null) request.onInterrupted?.(told)
      brokenSince ??= now
      if (now - brokenSince >= retryFor) throw told
      await sleep(pause, undefined, request.signal ? { signal: request.signal } : {}).catch(() => {})
      if (request.signal?.aborted) return
      pause = Math.min(pause * 2, 2000)
    }
  }
}

/** Sends a request and resolves with the head of the answer. */
function send(
  target: ClientTarget,
  address: Address,
  request: AnyRequest,
  headers: Readonly<Record<string, string>>,
): Promise<IncomingMessage> {
  const json = address.takes === 'json' ? JSON.stringify(request.body ?? {}) : null
  return new Promise((resolve, reject) => {
    let outgoing: ClientRequest
    try {
      outgoing = httpRequest(urlOf(target.url, address, request), {
        method: address.method,
        agent: false,
        ...(request.signal ? { signal: request.signal } : {}),
        headers: {
          ...(target.token === null ? {} : { authorization: `Bearer ${target.token}` }),
          ...(json === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) }),
          ...(request.upload ? { 'content-type': 'application/octet-stream' } : {}),
          ...(request.upload instanceof Uint8Array ? { 'content-length': request.upload.byteLength } : {}),
          ...headers,
        },
      })
    } catch (error) {
      reject(unreachable(target, reasonOf(error)))
      return
    }
    const stream = request.upload instanceof Uint8Array ? null : (request.upload ?? null)
    const timeoutMs = request.timeoutMs ?? 30_000
    // of silence: an upload, or a long answer, may take as long as it takes while it moves
    outgoing.setTimeout(timeoutMs, () => outgoing.destroy(new Error(`nothing came for ${timeoutMs} ms`)))
    outgoing.on('response', (response) => {
      // what is read at the caller's pace may rest as long as the caller does
      if (address.gives !== 'json') outgoing.setTimeout(0)
      if (stream && !outgoing.writableEnded) {
        // answered while the upload was under way: the answer counts, the rest is not wanted
        stream.unpipe(outgoing)
        stream.destroy()
        response.on('close', () => outgoing.destroy())
      }
      resolve(response)
    })
    outgoing.on('error', (error) => {
      stream?.destroy()
      reject(request.signal?.aborted ? error : unreachable(target, reasonOf(error)))
    })
    if (stream === null) return void outgoing.end(request.upload ?? json)
    stream.on('error', (error) => {
      reject(error)
      outgoing.destroy()
    })
    stream.pipe(outgoing)
  })
}

function urlOf(base: string, address: Address, request: AnyRequest): URL {
  const path = address.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(request.params?.[name] ?? ''))
  const url = new URL(path, base)
  for (const [key, value] of Object.entries(request.query ?? {}))
    if (value !== undefined) url.searchParams.set(key, String(value))
  if (address.once) url.searchParams.set('once', 'true')
  return url
}

async function readJson(target: ClientTarget, response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer)
  } catch (error) {
    throw unreachable(target, reasonOf(error))
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
  } catch {
    return null
  }
}

const unreachable = ({ url }: ClientTarget, reason: string) => portalError('control_plane_unreachable', { url, reason })

const reasonOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ECONNREFUSED') return 'nothing listens there'
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'the connection was cut'
  return message || code || String(error)
}
