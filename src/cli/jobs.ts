import type { JobView } from '../contract/schemas.ts'
import type { Cli, Colors } from './context.ts'
import { text } from './define.ts'
import { count, money, plain } from './format.ts'

/** The argument that names a job; completed by the control plane's names, if one answers at once. */
export const jobArgument = {
  parse: text,
  brief: "a job's name, a beginning of it that no other has, or its id",
  placeholder: 'JOB',
  proposeCompletions(this: Cli, partial: string): Promise<readonly string[]> {
    return jobNames(this, partial)
  },
} as const

/** Names of jobs that begin so: quick and quiet, since a person waits at the tab key. */
const jobNames = async (cli: Cli, partial: string): Promise<readonly string[]> => {
  try {
    const { reach } = await import('./control/reach.ts')
    const client = await reach(cli, { start: false })
    const { jobs } = await client.jobs({ query: { all: true, limit: 500 }, timeoutMs: 800 })
    return jobs.map(({ name }) => name).filter((name) => name.startsWith(partial))
  } catch {
    return []
  }
}

/** What a person should know of it beside what they asked for. */
export const noteWarnings = (cli: Cli, { warnings }: JobView): void => {
  for (const { sentence } of warnings) cli.note(`${cli.errorColors.yellow('portal: warning:')} ${plain(sentence)}`)
}

/** A state in the colour of how it goes. */
export const paintState = (state: string, { green, yellow, red, cyan, dim }: Colors): string => {
  if (state.startsWith('running')) return green(state)
  if (state.startsWith('succeeded')) return dim(state)
  if (state.startsWith('failed')) return red(state)
  if (state.startsWith('suspended') || state.startsWith('queued')) return yellow(state)
  return state.startsWith('stopped') ? dim(state) : cyan(state)
}

/** `running`, `running (unreachable)`, `moving (restore)`. */
export const stateText = (job: JobView): string => {
  if (job.unreachableSince !== null) return `${job.state} (unreachable)`
  return job.move === null || job.state === 'running' ? job.state : `${job.state} (${job.move.step})`
}

/** `40/100 (40%)`, `12 turns` (safe points passed); null: nothing was reported. */
export const progressText = ({ progress }: JobView): string | null => {
  if (progress === null) return null
  const { done, total, turns } = progress
  if (done !== null && total !== null && total > 0)
    return `${figure(done)}/${figure(total)} (${Math.floor((100 * done) / total)}%)`
  if (done !== null) return figure(done)
  return turns > 0 ? count(turns, 'turn') : null
}

const figure = (n: number): string => String(Math.round(n * 100) / 100)

/** `pinned to X`, `narrowed to X`, or where nothing binds it null. */
export const bindingText = ({ pinned, narrowed, on }: JobView): string | null => {
  if (pinned) return `pinned to ${plain(on ?? '')}`
  return narrowed ? `narrowed to ${plain(on ?? '')}` : null
}

export const spentText = ({ spent }: JobView): string => money(spent)
