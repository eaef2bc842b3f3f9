import { buildCommand, type Command, type TypedCommandParameters } from '@stricli/core'
import { PortalError } from '../contract/errors.ts'
import type { Cli } from './context.ts'
import { report } from './failure.ts'

/** What a command is made of. Its function gives the exit code, or nothing for 0; what it throws is shown as an error. */
interface Definition<Flags extends Readonly<Partial<Record<keyof Flags, unknown>>>, Args extends readonly unknown[]> {
  readonly brief: string
  /** more than the brief, for `--help` */
  readonly about?: string
  /** how the usage line goes after the command's name, where the one made from the parameters does not tell it */
  readonly usage?: readonly string[]
  /** lines to try, each with what it does; paths and names are made up */
  readonly examples: readonly (readonly [line: string, does: string])[]
  readonly parameters: NoInfer<TypedCommandParameters<Flags, Args, Cli>>
  run(cli: Cli, flags: Flags, ...args: Args): Promise<number | void>
}

/** One command: parsed by its parameters, with examples in its help, its errors shown in one way. */
export const define = <
  const Flags extends Readonly<Partial<Record<keyof Flags, unknown>>> = {},
  const Args extends readonly unknown[] = [],
>(
  definition: Definition<Flags, Args>,
): Command<Cli> => {
  const { brief, about, usage, examples, parameters, run } = definition
  const width = Math.max(...examples.map(([line]) => line.length))
  const shown = examples.map(([line, does]) => `  ${line.padEnd(width)}  ${does}`).join('\n')
  const func = async function (this: Cli, flags: Flags, ...args: Args): Promise<void> {
    try {
      this.process.exitCode = (await run(this, flags, ...args)) ?? 0
    } catch (error) {
      // what Ctrl-C broke off has no more to say than that
      if (this.interrupted.aborted && !(error instanceof PortalError)) this.process.exitCode = 130
      else this.process.exitCode = report(this, error, (flags as { readonly json?: unknown }).json === true)
    }
  }
  const built = {
    func,
    parameters,
    docs: {
      brief,
      fullDescription: `${about ?? `${brief}.`}\n\nEXAMPLES\n${shown}`,
      ...(usage ? { customUsage: usage } : {}),
    },
  }
  return buildCommand<Flags, Args, Cli>(built as Parameters<typeof buildCommand<Flags, Args, Cli>>[0])
}

/** `--json`, the same for every command. */
export const json = {
  kind: 'boolean',
  brief: 'print the result as JSON',
  optional: true,
  withNegated: false,
} as const

export const text = (input: string): string => input

/** A flag that is on when it is given, and has no form that turns it off. */
export const flag = (brief: string) => ({ kind: 'boolean', brief, optional: true, withNegated: false }) as const

/** A flag with a text, which may be left out. */
export const value = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: text, brief, placeholder, optional: true }) as const

/** A flag with a text that may be given more than once. */
export const values = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: text, brief, placeholder, optional: true, variadic: true }) as const
