/** The agents' sockets: who may open one, what is let through, and when one is given up. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import { WebSocketServer, type RawData, type WebSocket } from 'ws'
import { checkToControl } from '../../contract/agent-schema.ts'
import type { ToAgent } from '../../contract/agent.ts'
import { PortalError, portalError } from '../../contract/errors.ts'
import { agentSocketPath } from '../../contract/paths.ts'
import type { AgentGateway, AgentLink, AgentSession } from './api.ts'
import { bearerOf, guardOrigin } from './guard.ts'

export interface AgentSockets {
  /** Takes over a connection that asks to become a WebSocket. */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Closes all; agents come back by themselves. */
  close(): void
  readonly open: number
}

export interface AgentSocketParts {
  readonly agents: AgentGateway
  readonly hosts: readonly string[]
  readonly log: Logger
  readonly pingMs: number
}

/** Of one message, bytes: a report may name a thousand refused values for each of many attempts. */
const messageLimit = 32 * 1024 * 1024
/** What may wait for an agent that reads slowly, bytes; more, and it is cut off: after its connect it gets all orders again. */
const queueLimit = 16 * 1024 * 1024

export function createAgentSockets({ agents, hosts, log, pingMs }: AgentSocketParts): AgentSockets {
  const server = new WebSocketServer({ noServer: true, maxPayload: messageLimit, perMessageDeflate: false })
  const open = new Map<string, { readonly socket: WebSocket; readonly leave: () => void }>()
  let closed = false

  const accept = (agentId: string, socket: WebSocket) => {
    let session: AgentSession | null = null
    const leave = () => {
      clearInterval(pinging)
      if (open.get(agentId)?.socket === socket) open.delete(agentId)
      const ended = session
      session = null
      ended?.closed()
    }
    const give = (code: number, reason: string) => {
      leave()
      // a reason longer than 123 bytes is an error of the protocol
      socket.close(
        code,
        Buffer.from(reason)
          .subarray(0, 120)
          .toString('utf8')
          .replace(/\ufffd+$/, ''),
      )
      setTimeout(() => socket.terminate(), 2000).unref()
    }
    const link: AgentLink = {
      send(message: ToAgent) {
        if (socket.readyState !== socket.OPEN) return
        if (socket.bufferedAmount > queueLimit) return give(1013, 'reads too slowly')
        socket.send(JSON.stringify(message))
      },
      close: (reason) => give(1000, reason),
    }

    let alive = true
    socket.on('pong', () => (alive = true))
    const pinging = setInterval(() => {
      if (!alive) {
        log.info({ agent: agentId }, 'agent does not answer')
        leave()
        return socket.terminate()
      }
      alive = false
      socket.ping()
    }, pingMs)
    socket.on('close', leave)
    socket.on('error', (error) => log.info({ agent: agentId, error: error.message }, 'agent socket failed'))

    // the newer one is right: an agent opens a second socket only when it has given up the first
    const older = open.get(agentId)
    if (older) {
      older.leave()
      older.socket.close(1000, 'a newer connection of the same agent')
      setTimeout(() => older.socket.terminate(), 2000).unref()
    }
    open.set(agentId, { socket, leave })

    session = agents.connected(agentId, link)
    socket.on('message', (data: RawData, binary: boolean) => {
      if (session === null) return
      try {
        if (binary) throw new TypeError('expected text, not binary data')
        const message = checkToControl(JSON.parse((data as Buffer).toString('utf8')))
        if (message.t === 'hello' && message.agentId !== agentId)
          throw new TypeError('agentId: another than the token belongs to')
        session.received(message)
      } catch (error) {
        log.warn({ agent: agentId, error: (error as Error).message }, 'agent message refused')
        give(1008, (error as Error).message)
      }
    })
    log.info({ agent: agentId }, 'agent connected')
  }

  const admit = async (incoming: IncomingMessage): Promise<string> => {
    if (closed) throw portalError('shutting_down', {})
    guardOrigin(incoming.headers, hosts)
    const { pathname } = new URL(incoming.url ?? '/', 'http://portal')
    if (pathname !== agentSocketPath) throw portalError('route_not_found', { method: 'GET', path: pathname })
    const token = bearerOf(incoming.headers)
    const agentId = token === null ? null : await agents.authenticate(token)
    if (agentId === null) throw portalError('unauthorized', {})
    return agentId
  }

  return {
    upgrade(incoming, socket, head) {
      const ignore = () => {}
      socket.on('error', ignore)
      void (async () => {
        try {
          const agentId = await admit(incoming)
          socket.off('error', ignore)
          server.handleUpgrade(incoming, socket, head, (ws) => accept(agentId, ws))
        } catch (error) {
          if (!(error instanceof PortalError)) log.error({ err: error }, 'agent could not be admitted')
          refuse(socket, error instanceof PortalError ? error : portalError('internal', { request: 'upgrade' }))
        }
      })()
    },
    close() {
      closed = true
      for (const [, { socket, leave }] of open) {
        leave()
        socket.close(1001, 'the control plane is stopping')
        setTimeout(() => socket.terminate(), 1000).unref()
      }
      server.close()
    },
    get open() {
      return open.size
    },
  }
}

function refuse(socket: Duplex, error: PortalError): void {
  const body = JSON.stringify(error)
  socket.end(
    `HTTP/1.1 ${error.status} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}
