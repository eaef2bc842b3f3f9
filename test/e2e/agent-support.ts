import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type WebSocket, WebSocketServer } from 'ws'
import { checkToControl } from '../../src/contract/agent-schema.ts'
import type {
  AttemptOrder,
  AttemptReport,
  JobStart,
  MachineReport,
  ToAgent,
  ToControl,
  Want,
} from '../../src/contract/agent.ts'
import { builtIn, type JobSettings } from '../../src/core/jobs/settings.ts'

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const until = async <T>(what: () => T | null | undefined | false, ms = 10_000): Promise<T> => {
  const end = Date.now() + ms
  for (;;) {
    const found = what()
    if (found !== null && found !== undefined && found !== false) return found
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`)
    await pause(2)
  }
}

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts)
}

/** A control plane that does what a test tells it to, and remembers what it heard. */
export class FakeControl {
  readonly token = 'agent-token'
  readonly renewals: { attempt: string; at: number }[] = []
  readonly logs = new Map<string, Buffer>()
  readonly outputs = new Map<string, Buffer>()
  readonly workdirs = new Map<string, Buffer>()
  /** every phase that an attempt was in, in order, without repeats */
  readonly phases = new Map<string, string[]>()
  readonly offsets: number[] = []
  machine: MachineReport | null = null
  leaseLength: number | null = 3_600_000
  /** what it answers to outputs; anything but 2xx is tried again */
  outputsStatus = 204
  connections = 0
  hellos: ToControl[] = []
  readonly #reports = new Map<string, AttemptReport>()
  readonly #orders = new Map<string, AttemptOrder>()
  #server: Server | null = null
  #sockets: WebSocketServer | null = null
  #socket: WebSocket | null = null
  #port = 0

  async listen(): Promise<void> {
    const server = createServer(async (request, response) => {
      if (request.headers.authorization !== `Bearer ${this.token}`) return response.writeHead(401).end()
      const workdir = /^\/api\/agent\/workdirs\/([0-9a-f]{64})$/.exec(request.url ?? '')?.[1]
      if (workdir) {
        const bytes = this.workdirs.get(workdir)
        return bytes ? response.writeHead(200).end(bytes) : response.writeHead(404).end()
      }
      const attempt = /^\/api\/agent\/attempts\/([^/]+)\/outputs$/.exec(request.url ?? '')?.[1]
      if (attempt && request.method === 'PUT') {
        const bytes = await bodyOf(request)
        if (this.outputsStatus < 300) this.outputs.set(attempt, bytes)
        return response.writeHead(this.outputsStatus).end()
      }
      return response.writeHead(404).end()
    })
    const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
    server.on('upgrade', (request, socket, head) => {
      if (request.headers.authorization !== `Bearer ${this.token}` || request.url !== '/api/agent')
        return socket.destroy()
      sockets.handleUpgrade(request, socket, head, (ws) => this.#connected(ws))
    })
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve))
    this.#server = server
    this.#sockets = sockets
    this.#port = (server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Gone, as after a kill: nothing is said any more. Listens again at the same place with `listen`. */
  async cut(): Promise<void> {
    for (const client of this.#sockets?.clients ?? []) client.terminate()
    this.#server?.closeAllConnections()
    await new Promise<void>((resolve) => (this.#server ? this.#server.close(() => resolve()) : resolve()))
    this.#server = null
    this.#socket = null
  }

  send(message: ToAgent): void {
    this.#socket?.send(JSON.stringify(message))
  }

  order(attempt: string, version: number, want: Want): void {
    const order: AttemptOrder = { attempt, token: Number(attempt.split('.').at(-1)), jobVersion: version, want }
    this.#orders.set(attempt, order)
    this.send({ t: 'orders', attempts: [order] })
  }

  report(attempt: string): AttemptReport | null {
    return this.#reports.get(attempt) ?? null
  }

  /** Waits until the attempt's report is so. */
  async reported(attempt: string, how: (report: AttemptReport) => unknown, ms = 15_000): Promise<AttemptReport> {
    try {
      return await until(() => {
        const report = this.report(attempt)
        return report && how(report) ? report : null
      }, ms)
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${how}\nlast: ${JSON.stringify(this.report(attempt))}`, {
        cause: error,
      })
    }
  }

  log(attempt: string): string {
    return (this.logs.get(attempt) ?? Buffer.alloc(0)).toString('utf8')
  }

  addWorkdir(bytes: Buffer): string {
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    this.workdirs.set(sha256, bytes)
    return sha256
  }

  #connected(socket: WebSocket): void {
    this.#socket = socket
    this.connections++
    let told = false
    socket.on('message', (data) => {
      const message = checkToControl(JSON.parse(`${data as Buffer}`))
      switch (message.t) {
        case 'hello':
          this.hellos.push(message)
          return
        case 'report':
          this.machine = message.machine
          this.#reports.clear()
          for (const report of message.attempts) {
            this.#reports.set(report.attempt, report)
            const phases = this.phases.get(report.attempt) ?? []
            if (phases.at(-1) !== report.phase) phases.push(report.phase)
            this.phases.set(report.attempt, phases)
          }
          if (!told) socket.send(JSON.stringify({ t: 'orders', attempts: [...this.#orders.values()] }))
          told = true
          return
        case 'log': {
          const have = this.logs.get(message.attempt) ?? Buffer.alloc(0)
          const bytes = Buffer.from(message.data, 'base64')
          this.offsets.push(message.offset)
          if (message.offset > have.length) throw new Error(`a gap: ${message.offset} after ${have.length}`)
          if (message.offset + bytes.length > have.length)
            this.logs.set(message.attempt, Buffer.concat([have.subarray(0, message.offset), bytes]))
          socket.send(
            JSON.stringify({
              t: 'log-ack',
              attempt: message.attempt,
              upTo: this.logs.get(message.attempt)?.length ?? 0,
            }),
          )
          return
        }
        case 'renew': {
          this.renewals.push({ attempt: message.attempt, at: Date.now() })
          const { attempt, nonce } = message
          if (this.leaseLength !== null)
            socket.send(JSON.stringify({ t: 'granted', attempt, nonce, length: this.leaseLength } satisfies ToAgent))
        }
      }
    })
  }
}

export const settings = (change: Partial<JobSettings> = {}): JobSettings => ({ ...builtIn, ...change })

export const jobStart = (command: readonly string[], change: Partial<JobStart> = {}): JobStart => ({
  jobId: 'job1',
  jobName: 'nightly',
  command,
  env: {},
  workdir: null,
  outputs: [],
  checkpoint: 'auto',
  settings: builtIn,
  offer: {
    id: 'this-machine',
    connection: 'this-machine',
    provider: 'this-machine',
    region: 'here',
    zone: 'here',
    type: 'host',
    market: 'owned',
    price: { micros: 0, currency: 'USD' },
    notice: null,
    lifetime: null,
    cpus: 2,
    memoryBytes: 1e9,
    gpus: null,
  },
  key: Buffer.alloc(32, 7).toString('base64'),
  lastSlot: 0,
  ...change,
})

export const run = (start: JobStart, change: Partial<Extract<Want, { do: 'run' }>> = {}): Want => ({
  do: 'run',
  start,
  slot: null,
  aborted: null,
  lastSlot: start.lastSlot,
  ...change,
})

/** A machine in a folder: its agent is a real process, which may be killed and started again. */
export class FakeMachine {
  readonly folder: string
  readonly checkpoints: string
  #agent: ChildProcess | null = null

  constructor(
    control: FakeControl,
    { checkpoints, checkin = 900_000 }: { checkpoints?: string; checkin?: number } = {},
  ) {
    this.folder = mkdtempSync(join(tmpdir(), 'portal-machine-'))
    this.checkpoints = checkpoints ?? join(this.folder, 'checkpoints')
    mkdirSync(this.checkpoints, { recursive: true })
    writeFileSync(
      join(this.folder, 'bootstrap.json'),
      JSON.stringify({
        agentId: 'agent1',
        url: control.url,
        token: control.token,
        checkin,
        checkpoints: { directory: this.checkpoints },
      }),
      { mode: 0o600 },
    )
  }

  start(): void {
    const output = openSync(join(this.folder, 'agent.out'), 'a', 0o600)
    const main = join(import.meta.dirname, '../../src/agent/main.ts')
    this.#agent = spawn(process.execPath, [main, join(this.folder, 'bootstrap.json')], {
      detached: true,
      stdio: ['ignore', output, output],
      env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_|PORTAL_)/.test(name))),
    })
    closeSync(output)
  }

  get ended(): Promise<number | null> {
    const agent = this.#agent
    return new Promise((resolve) => {
      if (!agent || agent.exitCode !== null) return resolve(agent?.exitCode ?? null)
      agent.once('exit', (code) => resolve(code))
    })
  }

  /** kill -9 of the agent, nothing else. */
  async kill(): Promise<void> {
    const agent = this.#agent
    if (!agent || agent.exitCode !== null || agent.signalCode !== null) return
    const gone = new Promise((resolve) => agent.once('exit', resolve))
    agent.kill('SIGKILL')
    await gone
  }

  async restart(): Promise<void> {
    await this.kill()
    this.start()
  }

  attempt(id: string): string {
    return join(this.folder, 'attempts', id)
  }

  /** pids of everything that was started on this machine and is left, agents excepted */
  left(): number[] {
    const mine = this.#agent?.pid
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && Number(name) !== mine && Number(name) !== process.pid)
      .map(Number)
      .filter((pid) => {
        try {
          const { length } = readFileSync(`/proc/${pid}/cmdline`)
          return (
            length > 0 &&
            (readFileSync(`/proc/${pid}/environ`, 'utf8').includes(this.folder) ||
              readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(this.folder))
          )
        } catch {
          return false
        }
      })
  }

  /** Ends all that is left of it, with its folder. */
  async destroy(): Promise<void> {
    await this.kill()
    for (let round = 0; round < 100; round++) {
      const left = this.left()
      if (left.length === 0) break
      for (const pid of left)
        try {
          process.kill(pid, 'SIGKILL')
        } catch {
          // gone meanwhile
        }
      await pause(10)
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }

  get output(): string {
    return readFileSync(join(this.folder, 'agent.out'), 'utf8')
  }
}
