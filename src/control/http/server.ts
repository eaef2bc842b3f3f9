/** The control plane's HTTP server: the route table, guarded, checked, logged; streams that end when it ends. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import type { Logger } from 'pino'
import { PortalError, portalError } from '../../contract/errors.ts'
import { openapiDocument } from '../../contract/openapi.ts'
import type { RouteName } from '../../contract/paths.ts'
import { routes, type AnyRoute } from '../../contract/routes.ts'
import { limits } from '../../contract/schemas.ts'
import { createAgentSockets } from './agents.ts'
import type { AgentGateway, ControlApi } from './api.ts'
import { openOutputs, openWorkdirs, type Outputs, type Workdirs } from './archives.ts'
import { bearerOf, guardOrigin, sameToken } from './guard.ts'
import { createHandlers } from './handlers.ts'
import { checked } from './problems.ts'
import { receiveJson } from './receive.ts'
import { createStreams, type StreamTimes } from './streams.ts'

export interface ServerOptions {
  readonly api: ControlApi
  readonly agents: AgentGateway
  /** the token of the private file: who shows it is `person` */
  readonly token: string
  /** by which name a person's acts are recorded */
  readonly person: string
  readonly version: string
  readonly folders: { readonly workdirs: string; readonly outputs: string }
  readonly log: Logger
  /** default 127.0.0.1 */
  readonly host?: string
  /** default 0: any free one */
  readonly port?: number
  /** host names to answer to besides those of the loopback */
  readonly hosts?: readonly string[]
  readonly streamLimit?: number
  readonly times?: Partial<StreamTimes & { readonly pingMs: number }>
  /** Checks answers against the table too: for tests. */
  readonly verifyAnswers?: boolean
}

/** A full disk is no fault of Portal's: said as what it is, wherever it was met. */
const noRoom = (error: Error): PortalError | null => {
  const { code, path } = error as NodeJS.ErrnoException
  const full = code === 'store_full' || code === 'ENOSPC' || code === 'EDQUOT'
  return full ? portalError('disk_full', { path: path ?? 'the data directory' }) : null
}

export interface HttpServer {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  readonly workdirs: Workdirs
  readonly outputs: Outputs
  /** Takes nothing new, ends streams and sockets, lets answers under way finish for `graceMs` (default 2 s). */
  close(graceMs?: number): Promise<void>
}

/** Listens. Rejects when the address is taken. */
export async function createServer(options: ServerOptions): Promise<HttpServer> {
  const { log, hosts = [], host = '127.0.0.1' } = options
  const streams = createStreams(options.streamLimit ?? 512, {
    heartbeatMs: options.times?.heartbeatMs ?? 15_000,
    stallMs: options.times?.stallMs ?? 60_000,
  })
  const workdirs = await openWorkdirs(options.folders.workdirs)
  const outputs = await openOutputs(options.folders.outputs)
  const openapi = openapiDocument(options.version)
  const handlers = createHandlers({ api: options.api, agents: options.agents, workdirs, outputs, streams, openapi })
  const sockets = createAgentSockets({
    agents: options.agents,
    hosts,
    log,
    pingMs: options.times?.pingMs ?? 20_000,
  })
  let closing = false

  /** Who asks; throws `unauthorized`. A person's token opens no agent's route, nor the other way round. */
  const agentOf = async (route: AnyRoute, incoming: IncomingMessage): Promise<string> => {
    if (route.role === 'anyone') return ''
    const shown = bearerOf(incoming.headers)
    if (shown === null) throw portalError('unauthorized', {})
    if (route.role === 'agent') {
      const agent = await options.agents.authenticate(shown)
      if (agent !== null) return agent
    } else if (sameToken(shown, options.token)) return ''
    throw portalError('unauthorized', {})
  }

  const serve = async (
    route: AnyRoute,
    params: Readonly<Record<string, string>>,
    search: URLSearchParams,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
  ): Promise<Response> => {
    if (closing) throw portalError('shutting_down', {})
    const agent = await agentOf(route, incoming)
    const lastEventId = incoming.headers['last-event-id']
    const request = {
      params: route.params && checked(route.params, params, 'the path'),
      query: route.query && checked(route.query, queryOf(search), 'the query'),
      body: route.body && checked(route.body, await receiveJson(incoming, limits.body), 'the request body'),
      by: agent ? { policy: `agent ${agent}` } : { person: options.person },
      agent,
      lastEventId: typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : null,
      incoming,
      outgoing,
    }
    // the table says that these parts are what this handler takes; the compiler cannot follow that through a name
    const handle = handlers[route.name] as (request: unknown) => unknown
    const answer = await handle(request)
    if (route.gives === 'sse' || route.gives === 'bytes') return RESPONSE_ALREADY_SENT
    if (route.gives === 'nothing') return new Response(null, { status: route.status })
    if (options.verifyAnswers) route.response?.parse(answer)
    return json(answer, route.status)
  }

  const app = new Hono<{ Bindings: HttpBindings }>()
  for (const [path, ways] of byPath()) {
    app.all(path, (context) => {
      const { incoming, outgoing } = context.env
      const search = new URL(context.req.url).searchParams
      const route = choose(ways, incoming.method ?? '', search)
      if (route === null)
        throw portalError('method_not_allowed', {
          path,
          method: incoming.method ?? '',
          allowed: ways.map((w) => w.method),
        })
      return serve(route, context.req.param(), search, incoming, outgoing)
    })
  }
  app.notFound((context) => {
    const { method, path } = context.req
    return errorAnswer(portalError('route_not_found', { method, path: path.slice(0, 200) }))
  })
  app.onError((error, context) => {
    const { outgoing, incoming } = context.env
    const request = requestIds.get(incoming) ?? 'unknown'
    if (!(error instanceof PortalError)) log.error({ request, err: error }, 'request failed')
    if (outgoing.headersSent || outgoing.destroyed) return RESPONSE_ALREADY_SENT
    return errorAnswer(error instanceof PortalError ? error : (noRoom(error) ?? portalError('internal', { request })))
  })

  const server = createAdaptorServer({
    overrideGlobalObjects: false,
    hostname: 'portal.invalid',
    serverOptions: { requestTimeout: 0, headersTimeout: 10_000, keepAliveTimeout: 5000, maxHeaderSize: 16 * 1024 },
    fetch: async (request, env) => {
      const { incoming, outgoing } = env as HttpBindings
      const id = randomUUID().slice(0, 8)
      requestIds.set(incoming, id)
      const begun = performance.now()
      outgoing.once('close', () =>
        log.info(
          {
            request: id,
            method: incoming.method,
            path: incoming.url?.split('?')[0]?.slice(0, 200),
            status: outgoing.writableFinished ? outgoing.statusCode : 'cut',
            ms: Math.round(performance.now() - begun),
          },
          'request',
        ),
      )
      try {
        guardOrigin(incoming.headers, hosts)
      } catch (error) {
        return errorAnswer(error as PortalError)
      }
      return app.fetch(request, env as HttpBindings)
    },
  }) as Server
  server.maxConnections = 4096
  server.on('upgrade', (incoming: IncomingMessage, socket, head: Buffer) => sockets.upgrade(incoming, socket, head))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { port } = server.address() as AddressInfo
  const shown = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host

  return {
    url: `http://${shown}:${port}`,
    workdirs,
    outputs,
    async close(graceMs = 2000) {
      closing = true
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      streams.close()
      sockets.close()
      server.closeIdleConnections()
      const timer = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearTimeout(timer)
    },
  }
}

const requestIds = new WeakMap<IncomingMessage, string>()

function byPath(): Map<string, AnyRoute[]> {
  const table = new Map<string, AnyRoute[]>()
  for (const name of Object.keys(routes) as RouteName[])
    table.set(routes[name].path, [...(table.get(routes[name].path) ?? []), routes[name]])
  return table
}

/** Of the routes on one path the one that is meant: by method, and by `once` between a stream and what there is. */
function choose(ways: readonly AnyRoute[], method: string, search: URLSearchParams): AnyRoute | null {
  const exact = ways.filter((way) => way.method === method)
  if (exact.length > 1) {
    const once = search.get('once')
    search.delete('once')
    if (once !== null && once !== 'true' && once !== 'false')
      throw portalError('invalid_request', { place: 'once', problem: 'expected true or false' })
    return exact.find((way) => Boolean(way.once) === (once === 'true')) ?? null
  }
  // HEAD is GET without a body, where there is a body to leave out
  return (
    exact[0] ??
    (method === 'HEAD' ? (ways.find((w) => w.method === 'GET' && w.gives === 'json' && !w.once) ?? null) : null)
  )
}

function queryOf(search: URLSearchParams): Readonly<Record<string, string>> {
  const query: Record<string, string> = Object.create(null) as Record<string, string>
  for (const [key, value] of search) {
    if (key in query)
      throw portalError('invalid_request', { place: key.slice(0, 60), problem: 'expected once, it is there twice' })
    query[key] = value
  }
  return { ...query }
}

const json = (value: unknown, status: number): Response =>
  new Response(JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
  })

function errorAnswer(error: PortalError): Response {
  const answer = json(error, error.status)
  if (error.status === 401) answer.headers.set('www-authenticate', 'Bearer realm="portal"')
  return answer
}
