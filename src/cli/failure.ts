import { PortalError } from '../contract/errors.ts'
import type { Cli } from './context.ts'
import { plain } from './format.ts'

/** What was typed makes no sense: exit code 2. */
export const usage = (
  message: string,
  advice = 'see --help',
  facts: Readonly<Record<string, unknown>> = {},
): PortalError => new PortalError('usage', message, advice, facts, 400, 2)

/** What was asked could not be done: exit code 1. */
export const failed = (
  code: string,
  message: string,
  advice: string,
  facts: Readonly<Record<string, unknown>> = {},
): PortalError => new PortalError(code, message, advice, facts, 500, 1)

export interface RefusedLine {
  readonly path: string
  readonly type: string
  readonly reason: string
  readonly advice: string
}

/** `state.sock: socket.socket: an open connection …; close it …`, one value a line. */
export const refusedLines = (refused: readonly RefusedLine[]): readonly string[] =>
  refused.map(({ path, type, reason, advice }) =>
    plain(`${path}: ${type}: ${reason}${advice === '' ? '' : `; ${advice}`}`),
  )

/** Shows an error: what happened and what to do on stderr, the same as data on stdout where JSON was asked for. */
export const report = (cli: Cli, error: unknown, asJson: boolean): number => {
  const known = error instanceof PortalError ? error : unexpected(cli, error)
  const { red, bold, dim } = cli.errorColors
  cli.note(`${bold(red('portal:'))} ${plain(known.message)}`)
  for (const line of refusedLines(refusedOf(known))) cli.note(`  ${line}`)
  if (known.advice !== '') for (const line of known.advice.split('\n')) cli.note(dim(`  ${plain(line)}`))
  if (asJson) cli.json(known.toJSON())
  return known.exitCode
}

/** The values that a refusal names, where the error has some. */
export const refusedOf = (error: PortalError): readonly RefusedLine[] => {
  const { refused } = error.facts
  return Array.isArray(refused) ? (refused as readonly RefusedLine[]) : []
}

const unexpected = (cli: Cli, error: unknown): PortalError => {
  if (cli.env['PORTAL_DEBUG'] && error instanceof Error) cli.note(error.stack ?? String(error))
  const { code, message } = error as NodeJS.ErrnoException
  return failed(
    code ?? 'internal',
    error instanceof Error ? message : String(error),
    'Look with `portal doctor`; PORTAL_DEBUG=1 shows where it happened.',
  )
}
