import { constants } from 'node:os'
import { logBytes, type Client } from '../contract/client.ts'
import { PortalError } from '../contract/errors.ts'
import type { EventView, JobView, LogEnd } from '../contract/schemas.ts'
import type { Cli } from './context.ts'
import { following } from './control/follow.ts'
import { refusedLines, type RefusedLine } from './failure.ts'
import { ago, plain } from './format.ts'
import { bindingText } from './jobs.ts'
import { progress, type Progress } from './progress.ts'
import { pass } from './streams.ts'

interface FollowJob {
  /** tell what happened behind this event */
  readonly after: number
  /** the result as JSON at the end; the log then goes to stderr */
  readonly asJson: boolean
  /** only what is written from the next attempt on */
  readonly fromNow?: boolean
}

/** The exit code of a job that was suspended while it was followed. */
const suspendedCode = 75
/** How long after its end a job's last events are waited for. */
const lastWords_ms = 200

/**
 * Follows a job to its end: its log on stdout, what happens to it on stderr. Ctrl-C lets go of it, never ends it.
 *
 * @returns the job's own exit code, 128 + the signal that ended it, 75 when it was suspended, 130 when let go of
 */
export const followJob = async (quiet: Cli, first: Client, job: JobView, options: FollowJob): Promise<number> => {
  const line = progress(quiet, `${job.name} is being placed`)
  const cli: Cli = {
    ...quiet,
    note: (text) => {
      line.clear()
      quiet.note(text)
    },
  }
  const over = new AbortController()
  const signal = AbortSignal.any([over.signal, cli.interrupted])
  const places = new Places(cli, job)
  const events = tellEvents(cli, first, job, options.after, places, line, signal)
  const from = options.fromNow ? await places.next : null
  let end: LogEnd | null = null
  try {
    const stream = following(
      cli,
      first,
      (client, behind) =>
        client.followLog({
          params: { ref: job.id },
          query: from === null ? {} : { from: `${from}:0` },
          signal,
          ...behind,
        }),
      signal,
    )
    for await (const event of stream) {
      line.done()
      if (event.event === 'log') await pass(options.asJson ? process.stderr : process.stdout, logBytes(event.data))
      else end = event.data
    }
  } finally {
    line.done()
    if (end !== null) await settled(events, end.state === 'succeeded' ? 0 : lastWords_ms)
    over.abort()
    await events.catch(() => {})
  }
  if (end === null) return letGo(cli, job)
  if (options.asJson) {
    const { reach } = await import('./control/reach.ts')
    cli.json(await (await reach(cli)).job({ params: { ref: job.id } }))
  }
  return tellEnd(cli, job, end)
}

/** Waits for what happened last, which may still be on its way, but not for long. */
const settled = async (events: Promise<void>, limit_ms: number): Promise<void> => {
  const limit = Promise.withResolvers<void>()
  const timer = setTimeout(limit.resolve, limit_ms)
  await Promise.race([events, limit.promise])
  clearTimeout(timer)
}

/** Where the job is placed, told once for each place; and the first attempt that is told of. */
class Places {
  readonly next: Promise<number | null>
  #found: (attempt: number | null) => void = () => {}
  #last: string | null = null
  readonly #cli: Cli
  readonly #job: JobView

  constructor(cli: Cli, job: JobView) {
    this.#cli = cli
    this.#job = job
    this.next = new Promise((resolve) => (this.#found = resolve))
    cli.interrupted.addEventListener('abort', () => this.#found(null))
  }

  tell({ facts, why }: EventView): void {
    const { offer, attempt } = facts
    if (typeof attempt === 'number') this.#found(attempt)
    if (typeof offer !== 'string' || offer === this.#last) return
    this.#last = offer
    const binding = bindingText(this.#job)
    const placed = why?.code === 'place.chosen' ? plain(why.sentence) : `placed at ${plain(offer)}`
    say(this.#cli, `${this.#job.name} ${placed}${binding === null ? '' : `; ${binding}`}`)
  }

  /** No attempt will come. */
  none(): void {
    this.#found(null)
  }
}

/** What is waited for behind an event, as long as nothing was written; events that change nothing of it are left out. */
const waitingFor: Readonly<Record<string, string>> = {
  queued: 'waits for a place',
  starting: 'waits for its machine',
  resuming: 'waits for its machine, then restores',
  started: 'runs, and has written nothing yet',
  resumed: 'runs again, and has written nothing yet',
  unreachable: 'cannot be heard',
  reachable: 'is heard again',
  notice: 'got a notice',
  'move.begun': 'is being carried away',
  'move.committed': 'was carried away',
  'move.aborted': 'runs on where it is',
}

const say = (cli: Cli, text: string) => cli.note(cli.errorColors.dim(`portal: ${text}`))

const tellEvents = async (
  cli: Cli,
  first: Client,
  job: JobView,
  after: number,
  places: Places,
  line: Progress,
  signal: AbortSignal,
): Promise<void> => {
  const stream = following(
    quietly(cli),
    first,
    (client, behind) => client.followJobEvents({ params: { ref: job.id }, query: { after }, signal, ...behind }),
    signal,
  )
  try {
    for await (const { data: event } of stream) {
      const step = waitingFor[event.kind]
      if (step !== undefined) line.step(`${job.name} ${step}`)
      if (event.kind === 'starting' || event.kind === 'resuming' || event.kind === 'resumed') places.tell(event)
      else for (const line of eventLines(event)) say(cli, line)
      if (event.kind === 'suspended' || event.kind === 'ended') return places.none()
    }
  } catch (error) {
    // the log's stream meets the same trouble, and is the one that tells of it
    if (!(error instanceof PortalError)) throw error
  } finally {
    places.none()
  }
}

/** The log's stream tells of a lost connection; this one need not say it again. */
const quietly = (cli: Cli): Cli => ({ ...cli, note: () => {} })

/** What of an event is worth a line to somebody who watches the log. */
const eventLines = ({ kind, why, facts }: EventView): readonly string[] => {
  const sentence = why ? plain(why.sentence) : ''
  const because = sentence === '' ? '' : `: ${sentence}`
  switch (kind) {
    case 'queued':
      return sentence === '' ? [] : [sentence]
    case 'notice':
      return [`notice${because}`]
    case 'warned':
      return [`warning${because}`]
    case 'unreachable':
      return [`its machine cannot be heard${because}`]
    case 'reachable':
      return ['its machine is heard again']
    case 'move.begun':
      return [`${facts['kind'] === 'suspension' ? 'being suspended' : 'being moved'}${because}`]
    case 'move.committed':
      return typeof facts['to'] === 'string' ? [`moved to ${plain(facts['to'])}`] : []
    case 'move.aborted': {
      const refused = (facts['refused'] ?? []) as readonly RefusedLine[]
      return [`not carried away, runs on${because}`, ...refusedLines(refused).map((line) => `  ${line}`)]
    }
    default:
      return []
  }
}

const letGo = (cli: Cli, { name }: JobView): number => {
  cli.note('')
  cli.note(`portal: let go of ${name}; it runs on`)
  cli.note(
    cli.errorColors.dim(
      `  follow it   portal logs -f ${name}\n  suspend it  portal suspend ${name}\n  end it      portal stop ${name}`,
    ),
  )
  return 130
}

const tellEnd = (cli: Cli, { name }: JobView, { state, exit, why, resumableUntil }: LogEnd): number => {
  const because = why ? `: ${plain(why.sentence)}` : ''
  if (state === 'suspended') {
    cli.note(`portal: ${name} is suspended${because}`)
    const until = resumableUntil === null ? '' : ` (its checkpoint is kept, expiring ${ago(resumableUntil, cli.now())})`
    cli.note(cli.errorColors.dim(`  go on with  portal resume ${name}${until}`))
    return suspendedCode
  }
  const code = exitCodeOf(exit, state)
  if (state !== 'succeeded') {
    cli.note(`portal: ${name} ${state === 'stopped' ? 'was stopped' : state}${because}`)
    if (resumableUntil !== null)
      cli.note(
        cli.errorColors.dim(
          `  go on with  portal resume ${name} (possible until ${new Date(resumableUntil).toISOString()})`,
        ),
      )
  }
  return code
}

/** As a shell counts: the job's own code, or 128 and the signal that ended it. */
export const exitCodeOf = (exit: LogEnd['exit'], state: LogEnd['state']): number => {
  if (exit?.signal) return 128 + ((constants.signals as Readonly<Record<string, number>>)[exit.signal] ?? 0)
  return exit?.code ?? (state === 'succeeded' ? 0 : 1)
}
