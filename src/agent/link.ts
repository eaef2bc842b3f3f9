import type { Logger } from 'pino'
import { WebSocket } from 'ws'
import { checkToAgent } from '../contract/agent-schema.ts'
import type { ToAgent, ToControl } from '../contract/agent.ts'
import { agentSocketPath } from '../contract/paths.ts'
import { second, type Duration } from '../core/time/index.ts'

export interface LinkParts {
  /** where the control plane listens now, `http(s)://…`, and the token to show there */
  target(): { readonly url: string; readonly token: string }
  readonly log: Logger
  opened(): void
  closed(): void
  received(message: ToAgent): void
}

const firstRetry: Duration = 20
const slowest: Duration = 5 * second
const pingEvery: Duration = 5 * second
/** Longer than this a handshake is not waited for. */
const patience: Duration = 10 * second
const messageLimit = 64 * 1024 * 1024

/** The one connection to the control plane, opened again and again for as long as the agent lives. */
export class Link {
  readonly #parts: LinkParts
  #socket: WebSocket | null = null
  #isOpen = false
  #failures = 0
  #retry: NodeJS.Timeout | null = null
  #ping: NodeJS.Timeout | null = null
  #stopped = false

  constructor(parts: LinkParts) {
    this.#parts = parts
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Bytes handed over and not sent yet. */
  get waiting(): number {
    return this.#socket?.bufferedAmount ?? 0
  }

  open(): void {
    if (this.#stopped || this.#socket) return
    const { log } = this.#parts
    const { url, token } = this.#parts.target()
    const socket = new WebSocket(`${url.replace(/^http/, 'ws').replace(/\/$/, '')}${agentSocketPath}`, {
      headers: { authorization: `Bearer ${token}` },
      handshakeTimeout: patience,
      maxPayload: messageLimit,
      perMessageDeflate: false,
    })
    this.#socket = socket
    let answered = true
    socket.on('open', () => {
      this.#isOpen = true
      this.#failures = 0
      this.#ping = setInterval(() => {
        if (!answered) return socket.terminate()
        answered = false
        socket.ping()
      }, pingEvery)
      log.info('connected')
      this.#parts.opened()
    })
    socket.on('pong', () => (answered = true))
    socket.on('message', (data, binary) => {
      answered = true
      try {
        if (binary) throw new TypeError('expected text, not binary data')
        this.#parts.received(checkToAgent(JSON.parse(`${data as Buffer}`)))
      } catch (error) {
        log.error({ error: (error as Error).message }, 'a message of the control plane was refused')
      }
    })
    socket.on('error', (error) => {
      if (this.#failures % 100 === 0) log.info({ error: error.message }, 'no connection')
    })
    socket.on('close', () => this.#lost(socket))
  }

  /** False: there is no connection; nothing is kept for later, since everything is said anew after the next connect. */
  send(message: ToControl): boolean {
    if (!this.#isOpen || !this.#socket) return false
    this.#socket.send(JSON.stringify(message))
    return true
  }

  close(): void {
    this.#stopped = true
    if (this.#retry) clearTimeout(this.#retry)
    this.#retry = null
    this.#socket?.close(1000)
    const socket = this.#socket
    setTimeout(() => socket?.terminate(), 200).unref()
  }

  #lost(socket: WebSocket): void {
    if (this.#socket !== socket) return
    const was = this.#isOpen
    this.#socket = null
    this.#isOpen = false
    if (this.#ping) clearInterval(this.#ping)
    this.#ping = null
    if (was) {
      this.#parts.log.info('connection lost')
      this.#parts.closed()
    }
    if (this.#stopped) return
    // the first few at once, for a control plane that only restarts; then slower, and never all agents together
    const delay = Math.min(firstRetry * 1.6 ** this.#failures++, slowest)
    this.#retry = setTimeout(() => this.open(), delay * (0.75 + Math.random() / 2))
  }
}
