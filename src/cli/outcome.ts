import type { Client } from '../contract/client.ts'
import { PortalError } from '../contract/errors.ts'
import type { AskedView, EventView, JobView } from '../contract/schemas.ts'
import type { Cli } from './context.ts'
import { following } from './control/follow.ts'
import { failed, type RefusedLine } from './failure.ts'
import { plain, size } from './format.ts'
import { progress } from './progress.ts'

export type Asked = 'suspend' | 'move' | 'stop' | 'resume'

export interface Outcome {
  readonly job: JobView
  /** the event that ended the wait */
  readonly by: EventView
  /** what happened meanwhile, oldest first */
  readonly events: readonly EventView[]
}

/** What ends the wait for each: everything that makes what was asked done or impossible. */
const ends: Readonly<Record<Asked, readonly string[]>> = {
  suspend: ['suspended', 'move.aborted', 'ended'],
  move: ['move.committed', 'move.aborted', 'suspended', 'ended'],
  stop: ['ended'],
  resume: ['resumed', 'suspended', 'ended'],
}

/** A suspension is told of in the same words as a move, up to its kind. */
const isEndOf = (what: Asked, { kind, facts }: EventView): boolean =>
  ends[what].includes(kind) && !(kind === 'move.committed' && facts['kind'] === 'suspension')

/** Steps of a move as they are told while one waits. */
const steps: Readonly<Record<string, string>> = {
  probe: 'looking at its state',
  target: 'getting a machine',
  hold: 'saving at its next safe point',
  restore: 'restoring',
  promise: 'making sure of the source',
  seal: 'sealing the checkpoints',
  committed: 'changing over',
}

/**
 * Follows a job's events until what was asked of it is done or is known not to be; a line on the terminal says which
 * step it is at.
 *
 * @throws PortalError `checkpoint_refused` with the values (exit code 3), `not_done` with the reason, `let_go` on Ctrl-C
 */
export const outcomeOf = async (cli: Cli, client: Client, what: Asked, { job, after }: AskedView): Promise<Outcome> => {
  const line = progress(cli, `${what}: asked`)
  const events: EventView[] = []
  let by: EventView | null = null
  try {
    const stream = following(cli, client, (to, behind) =>
      to.followJobEvents({ params: { ref: job.id }, query: { after }, signal: cli.interrupted, ...behind }),
    )
    for await (const { data: event } of stream) {
      if (event.seq <= after) continue
      events.push(event)
      const step = stepText(what, event)
      if (step !== null) line.step(step)
      if (isEndOf(what, event)) {
        by = event
        break
      }
    }
  } finally {
    line.done()
  }
  if (by === null)
    throw new PortalError(
      'let_go',
      `not waiting any longer; what was asked of ${job.name} goes on`,
      `See with \`portal show ${job.name}\` what became of it.`,
      {},
      400,
      130,
    )
  if (by.kind === 'move.aborted') throw notDone(what, job, by)
  // its control plane may have been replaced meanwhile
  const { reach } = await import('./control/reach.ts')
  const now = await (await reach(cli)).job({ params: { ref: job.id } })
  if (by.kind === 'ended' && what !== 'stop') throw endedFirst(what, now)
  if (by.kind === 'suspended' && what !== 'suspend') throw notDone(what, job, by)
  return { job: now, by, events }
}

/** What else happens meanwhile, where it changes what is waited for. */
const during: Readonly<Record<string, string>> = {
  'move.begun': 'looking at its state',
  resuming: 'getting a machine, restoring',
  starting: 'getting a machine',
  queued: 'waiting for a place',
  notice: 'its machine got a notice',
  unreachable: 'its machine cannot be heard',
  reachable: 'its machine is heard again',
}

/** Null: nothing that one would wait for differently. */
const stepText = (what: Asked, { kind, facts }: EventView): string | null => {
  const step = typeof facts['step'] === 'string' ? facts['step'] : null
  if (kind === 'move.step' && step !== null) {
    const { bytes } = facts
    return `${what}: ${steps[step] ?? step}${typeof bytes === 'number' ? ` ${size(bytes)}` : ''}`
  }
  return kind in during ? `${what}: ${during[kind]}` : null
}

const notDone = (what: Asked, job: JobView, event: EventView): PortalError => {
  const refused = (event.facts['refused'] ?? []) as readonly RefusedLine[]
  const sentence = event.why?.sentence ?? 'no reason was given'
  const runs = what === 'resume' ? 'it stays suspended' : 'it runs on where it is'
  if (event.why?.code === 'place.no_better')
    return failed(
      'no_better_place',
      `${job.name} stays where it is: ${sentence}`,
      '`portal move --on PATTERN` looks elsewhere; `portal offers` lists where to.',
      { job: job.name, why: event.why },
    )
  // a job that says nothing of its state is refused as well: there is no value to name, but the answer is the same
  if (event.why?.code === 'move.no_way')
    return new PortalError(
      'checkpoint_refused',
      `${job.name}: ${what} refused, ${runs}: ${sentence}`,
      'A job names its state by `job.state(…)`: docs/sdk-python.md, docs/sdk-node.md.',
      { job: job.name, count: 0, refused, why: event.why },
      409,
      3,
    )
  if (refused.length === 0)
    return failed(
      'not_done',
      `${job.name}: ${what} was not done: ${sentence}; ${runs}`,
      `\`portal explain ${job.name}\` says more.`,
      { job: job.name, why: event.why },
    )
  return new PortalError(
    'checkpoint_refused',
    `${job.name}: ${what} refused, ${runs}: a checkpoint cannot carry ${refused.length === 1 ? 'this value' : `these ${refused.length} values`}`,
    '',
    { job: job.name, count: refused.length, refused, why: event.why },
    409,
    3,
  )
}

const endedFirst = (what: Asked, job: JobView): PortalError =>
  failed(
    'job_ended',
    `${job.name} ended before ${what} was done: it ${job.state}${job.why ? ` (${job.why.sentence})` : ''}`,
    `\`portal show ${job.name}\` says how.`,
    { job: job.name, state: job.state },
  )

/** How long each step of a move or suspension took, in their order. */
export const stepTimes = (events: readonly EventView[]): readonly { readonly step: string; readonly ms: number }[] => {
  const times = events.findLast(({ kind }) => kind === 'move.committed')?.facts['times']
  if (typeof times !== 'object' || times === null) return []
  const marks = Object.entries(times as Readonly<Record<string, number>>)
    .filter(([step]) => step in steps)
    .sort(([, a], [, b]) => a - b)
  return marks.slice(0, -1).map(([step, at], index) => ({
    step: plain(step),
    ms: (marks[index + 1] as [string, number])[1] - at,
  }))
}
