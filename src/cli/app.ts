import {
  ArgumentParseError,
  ArgumentScannerError,
  buildApplication,
  buildCommand,
  buildRouteMap,
  EnumValidationError,
  FlagNotFoundError,
  formatMessageForArgumentScannerError,
  run,
  text_en,
  UnsatisfiedPositionalError,
  type Application,
  type ApplicationText,
} from '@stricli/core'
import { commandNames, commands, isCommand, type CommandName } from './commands/index.ts'
import { splitAtCommand } from './boundary.ts'
import { makeContext, type Cli, type Target } from './context.ts'
import { leanOutput } from './streams.ts'
import { calledElsewhere, didYouMean, nearest } from './nearest.ts'

/** Runs what was typed, and leaves its exit code in the process. */
export const main = async (inputs: readonly string[]): Promise<void> => {
  if (inputs[0] === '__complete') return (await import('./complete.ts')).complete(inputs.slice(1))
  const interrupt = new AbortController()
  const streams = { stdout: leanOutput(1, () => process.stdout), stderr: leanOutput(2, () => process.stderr) }
  const context = await makeContext(streams, process.env, process.cwd(), interrupt.signal)
  // who looks at it lets go by itself; nobody has yet: then Ctrl-C ends the command at once, as it does anywhere
  let watched = false
  const cli = Object.defineProperty({ ...context }, 'interrupted', {
    enumerable: true,
    get: () => {
      watched = true
      return interrupt.signal
    },
  })
  const letGo = () => {
    if (!watched || interrupt.signal.aborted) process.exit(130) // asked twice: at once, too
    interrupt.abort()
  }
  process.on('SIGINT', letGo)
  process.on('SIGTERM', letGo)
  process.exitCode = await runInputs(inputs, cli)
  process.off('SIGINT', letGo)
  process.off('SIGTERM', letGo)
}

/** Parses and runs; gives the exit code. */
export const runInputs = async (inputs: readonly string[], cli: Cli): Promise<number> => {
  const [first] = inputs
  const typed =
    first === '--version' || first === '-v' ? ['version'] : first === 'help' ? [...inputs.slice(1), '--help'] : inputs
  const name = typed[0] !== undefined && isCommand(typed[0]) ? typed[0] : null
  const { app, target } = await application(name === null ? [] : [name])
  const unknown = target ? unknownWord(target, typed[1]) : null
  if (unknown !== null) {
    cli.note(`portal: ${unknown}`)
    return 2
  }
  if (name === null && (typed.length === 0 || typed[0] === '--help' || typed[0] === '-h')) {
    cli.print(frontPage())
    return 0
  }
  const host = cli.process
  host.exitCode = null
  await run(app, name === 'run' && target ? splitAtCommand(typed, target) : typed, cli)
  const code = Number(host.exitCode ?? 0)
  return code >= 0 ? code : code === -5 || code === -4 ? 2 : 1
}

/** A group with a command of its own would take a mistyped word for an argument of that. */
const unknownWord = (target: Target, word: string | undefined): string | null => {
  if (!('getAllEntries' in target) || word === undefined || word.startsWith('-')) return null
  if (target.getRoutingTargetForInput(word)) return null
  const known = target.getAllEntries().map(({ name }) => name['convert-camel-to-kebab'])
  return `there is no command ${word}${didYouMean(nearest(word, known)) || `: it is one of ${known.join(', ')}`}`
}

/** The application with the named commands loaded; of the others only the brief is known. */
export const application = async (
  loaded: readonly CommandName[],
): Promise<{ readonly app: Application<Cli>; readonly target: Target | null }> => {
  const routes: Record<string, Target> = {}
  for (const name of commandNames) {
    const { brief, load } = commands[name]
    routes[name] = loaded.includes(name)
      ? (await load()).command
      : buildCommand<{}, [], Cli>({ func: async () => {}, parameters: {}, docs: { brief } })
  }
  const [only] = loaded
  return {
    app: build(routes, loaded[0] ?? null),
    target: loaded.length === 1 && only ? (routes[only] as Target) : null,
  }
}

const build = (routes: Readonly<Record<string, Target>>, loaded: CommandName | null): Application<Cli> =>
  buildApplication(
    buildRouteMap<string, Cli>({
      routes,
      docs: {
        brief: 'Runs jobs, and carries their state from one machine to another',
      },
    }),
    {
      name: 'portal',
      scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
      documentation: { caseStyle: 'convert-camel-to-kebab', onlyRequiredInUsageLine: true, disableAnsiColor: true },
      localization: { text: texts(routes, loaded) },
    },
  )

/** One sentence an error, with the nearest known. */
const texts = (routes: Readonly<Record<string, Target>>, loaded: CommandName | null): ApplicationText => ({
  ...text_en,
  briefs: {
    ...text_en.briefs,
    help: 'print this help',
    helpAll: 'print this help with everything hidden',
    argumentEscapeSequence: 'everything after it is taken as it stands',
  },
  noCommandRegisteredForInput: ({ input }) =>
    `portal: there is no command ${input}${didYouMean(meant(input, Object.keys(routes))) || '; see portal --help'}`,
  exceptionWhileParsingArguments: (error) =>
    `portal: ${parsingMessage(error, `portal${loaded === null ? '' : ` ${loaded}`} --help`)}`,
})

/** The commands that a word was meant for: what other programs call so, else those that are spelled nearly so. */
const meant = (word: string, known: readonly string[]): readonly string[] => {
  const named = calledElsewhere(word)
  return named === null ? nearest(word, known) : [named]
}

/** `portal` alone, and `portal --help`. */
const frontPage = (): string => {
  const width = Math.max(...commandNames.map((name) => name.length))
  return [
    'Portal runs jobs and carries their state from one machine to another: on a notice, to save money, or by hand.',
    '',
    '  portal run -- python3 train.py    run it here, follow its log',
    '  portal explain JOB                why it is where it is',
    '  portal COMMAND --help             examples and every flag of a command',
    '',
    'COMMANDS',
    ...commandNames.map((name) => `  ${name.padEnd(width)}  ${commands[name].brief}`),
  ].join('\n')
}

const unquote = (name: string): string => name.replaceAll('`', '')

const parsingMessage = (error: unknown, help: string): string => {
  if (error instanceof FlagNotFoundError) {
    const known = didYouMean(
      nearest(
        error.input,
        error.corrections.map((name) => unquote(name).replace(/^--/, '')),
      ).map((name) => `--${name}`),
    )
    return `there is no flag --${error.input}${known || `; see \`${help}\``}`
  }
  if (error instanceof EnumValidationError) {
    const known = didYouMean(nearest(error.input, error.values))
    return `--${error.externalFlagName} cannot be ${error.input}${known || `: it is one of ${error.values.join(', ')}`}`
  }
  if (error instanceof ArgumentParseError) {
    const { exception, externalFlagNameOrPlaceholder: name } = error
    return `${name}: ${exception instanceof Error ? exception.message : String(exception)}`
  }
  if (error instanceof UnsatisfiedPositionalError) return `${error.placeholder} is missing; see \`${help}\``
  if (error instanceof ArgumentScannerError) {
    const sentence = formatMessageForArgumentScannerError(error, {})
    return sentence.charAt(0).toLowerCase() + sentence.slice(1)
  }
  return error instanceof Error ? error.message : String(error)
}
