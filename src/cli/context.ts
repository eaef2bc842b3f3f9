import type { Command, CommandContext, RouteMap, StricliProcess } from '@stricli/core'
import type pc from 'picocolors'
import type { Output } from './streams.ts'

export type Colors = Pick<ReturnType<typeof pc.createColors>, 'bold' | 'cyan' | 'dim' | 'green' | 'red' | 'yellow'>

/** What every command is given: the terminal, the environment, the time. Tests give their own. */
export interface Cli extends CommandContext {
  readonly process: StricliProcess
  readonly env: Readonly<Record<string, string | undefined>>
  readonly directory: string
  now(): number
  /** colours for stdout; all of them do nothing where they are not wanted */
  readonly colors: Colors
  /** colours for stderr */
  readonly errorColors: Colors
  /** columns of the terminal on stdout; null: not a terminal, so lines are as long as they need to be */
  readonly width: number | null
  /** whether stderr is a terminal: progress is shown there and nowhere else */
  readonly live: boolean
  /** the first Ctrl-C, or a request to end; a command that follows something lets go of it cleanly */
  readonly interrupted: AbortSignal
  /** a line of the result */
  print(text: string): void
  /** a line for the person, beside the result: it never mixes with what a script reads */
  note(text: string): void
  /** the result as data, for `--json` */
  json(value: unknown): void
}

/** A command, or a group of them. */
export type Target = Command<Cli> | RouteMap<Cli>

export interface Streams {
  readonly stdout: Output
  readonly stderr: Output
}
/** The context on given streams; `env` decides about colours (NO_COLOR, FORCE_COLOR, TERM=dumb). */
export const makeContext = async (
  streams: Streams,
  env: Cli['env'],
  directory: string,
  interrupted: AbortSignal,
  host: StricliProcess = { ...streams, env, exitCode: null } as StricliProcess,
): Promise<Cli> => {
  const { stdout, stderr } = streams
  return {
    process: host,
    env,
    directory,
    now: Date.now,
    colors: await colorsFor(stdout, env),
    errorColors: await colorsFor(stderr, env),
    width: stdout.isTTY === true ? Math.max(40, stdout.columns ?? 80) : null,
    live: stderr.isTTY === true && env['TERM'] !== 'dumb',
    interrupted,
    print: (text) => void stdout.write(`${text}\n`),
    note: (text) => void stderr.write(`${text}\n`),
    json: (value) => void stdout.write(`${JSON.stringify(value, null, 2)}\n`),
  }
}

const same: Colors['dim'] = (text) => String(text)
const noColors: Colors = { bold: same, cyan: same, dim: same, green: same, red: same, yellow: same }

/** Loaded only where there are colours: it looks at the streams, which costs. */
const colorsFor = async (stream: Output, env: Cli['env']): Promise<Colors> =>
  colored(stream, env) ? (await import('picocolors')).default.createColors(true) : noColors

const colored = (stream: Output, env: Cli['env']): boolean => {
  if (env['NO_COLOR']) return false
  if (env['FORCE_COLOR'] && env['FORCE_COLOR'] !== '0') return true
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}
