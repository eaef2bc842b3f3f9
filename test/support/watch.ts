import type { Client } from '../../src/contract/client.ts'
import { logBytes } from '../../src/contract/client.ts'
import { PortalError } from '../../src/contract/errors.ts'
import type { EventView, JobView, LogEnd } from '../../src/contract/schemas.ts'

type State = JobView['state']

/** How long anything is waited for: far longer than it takes on a busy machine, and far less than forever. */
const patience = 60_000

/**
 * One job, followed by its events from the first on, across restarts of the control plane. Whatever is waited for is waited
 * for by events; what never comes is told with all that happened instead.
 */
export class JobWatch {
  readonly id: string
  readonly name: string
  readonly events: EventView[] = []
  readonly #client: () => Client
  readonly #looks = new Set<() => void>()
  readonly #over = new AbortController()
  readonly #following: Promise<void>
  #failed: unknown = null

  constructor(client: () => Client, { id, name }: Pick<JobView, 'id' | 'name'>) {
    this.#client = client
    this.id = id
    this.name = name
    this.#following = this.#follow()
  }

  /** The last thing that happened so far: what is waited for next can be asked to come after it. */
  get last(): number {
    return this.events.at(-1)?.seq ?? 0
  }

  /** Waits for an event, by kind or by what it says; those before `after` (a seq) do not count. */
  async event(wanted: string | ((event: EventView) => boolean), after = 0): Promise<EventView> {
    const fits = typeof wanted === 'string' ? ({ kind }: EventView) => kind === wanted : wanted
    return this.#until(
      () => this.events.find((event) => event.seq > after && fits(event)) ?? null,
      `event ${String(wanted)}`,
    )
  }

  /** Waits for one step of a move or a suspension. Its first one, the probe, begins with it; its last one is its outcome. */
  step(step: string, after = 0): Promise<EventView> {
    if (step === 'probe') return this.event('move.begun', after)
    if (step === 'committed') return this.event('move.committed', after)
    return this.event(({ kind, facts }) => kind === 'move.step' && facts['step'] === step, after)
  }

  /** Waits until it is in one of these states. Looks whenever something happened to it. */
  async state(...wanted: readonly State[]): Promise<JobView> {
    let seen = ''
    for (const until = performance.now() + patience; performance.now() < until;) {
      const before = this.events.length
      const view = await this.view().catch(unlessUnreachable)
      if (view && wanted.includes(view.state)) return view
      seen = view?.state ?? 'unreachable'
      await this.#until(() => (this.events.length > before ? true : null), wanted.join(' or '), seen)
    }
    throw this.#late(wanted.join(' or '), seen)
  }

  view(): Promise<JobView> {
    return this.#client().job({ params: { ref: this.id } })
  }

  /** The log as it is now. */
  async log(): Promise<string> {
    const parts: Buffer[] = []
    for await (const part of await this.#client().readLog({ params: { ref: this.id } })) parts.push(part as Buffer)
    return Buffer.concat(parts).toString('utf8')
  }

  /** Follows the log until it contains the text, and gives what there is by then. */
  async line(text: string): Promise<string> {
    let log = ''
    await this.#followLog(
      (piece) => (log += piece).includes(text),
      `a log with ${JSON.stringify(text)}`,
      () => log,
    )
    return log
  }

  /** Follows the log to its end, which comes when the job has ended or is suspended. */
  async end(): Promise<{ readonly log: string; readonly end: LogEnd }> {
    let log = ''
    const end = await this.#followLog(
      (piece) => void (log += piece),
      'the end of the log',
      () => log,
    )
    if (!end) throw new Error('a log was followed, and had no end')
    return { log, end }
  }

  async close(): Promise<void> {
    this.#over.abort()
    await this.#following
  }

  async #followLog(
    enough: (piece: string) => boolean | void,
    what: string,
    seen: () => string,
  ): Promise<LogEnd | null> {
    const late = AbortSignal.timeout(patience)
    const stream = this.#client().followLog({ params: { ref: this.id }, signal: late })
    for await (const { event, data } of stream) {
      if (event === 'end') return data as LogEnd
      if (enough(logBytes(data as Parameters<typeof logBytes>[0]).toString('utf8'))) return null
    }
    throw this.#late(what, seen())
  }

  async #follow(): Promise<void> {
    const { signal } = this.#over
    while (!signal.aborted) {
      try {
        const after = this.last
        for await (const { data } of this.#client().followJobEvents({
          params: { ref: this.id },
          ...(after > 0 && { query: { after } }),
          signal,
          retryForMs: patience,
        })) {
          this.events.push(data as EventView)
          for (const look of this.#looks) look()
        }
      } catch (error) {
        if (signal.aborted) return
        this.#failed = error
        for (const look of this.#looks) look()
        return
      }
    }
  }

  #until<T>(look: () => T | null, what: string, seen = ''): Promise<T> {
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(late)
        this.#looks.delete(again)
      }
      const again = () => {
        const found = look()
        if (found === null && this.#failed === null) return
        done()
        if (found === null) reject(new Error(`the events of ${this.name} cannot be followed: ${String(this.#failed)}`))
        else resolve(found)
      }
      const late = setTimeout(() => {
        done()
        reject(this.#late(what, seen))
      }, patience)
      this.#looks.add(again)
      again()
    })
  }

  #late(what: string, seen: string): Error {
    const happened = this.events.map(
      ({ at, kind, why, facts }) => `${at} ${kind} ${why?.sentence ?? ''} ${JSON.stringify(facts)}`,
    )
    return new Error(`${this.name}: ${what} did not come; it is ${seen}\n${happened.join('\n')}`)
  }
}

const unlessUnreachable = (error: unknown): null => {
  if (error instanceof PortalError && error.exitCode === 5) return null
  throw error
}
