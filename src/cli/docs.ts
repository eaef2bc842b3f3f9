import { generateHelpTextForAllCommands, type Application, type CommandContext } from '@stricli/core'
import { application } from './app.ts'
import { commandNames } from './commands/index.ts'

/** The commands' help as a page: `docs/cli.md`, written by `scripts/docs-cli.ts` and held to be current by a test. */
export const commandsPage = async (): Promise<string> => {
  const { app } = await application(commandNames)
  const sections = generateHelpTextForAllCommands(app as unknown as Application<CommandContext>).map(
    ([route, help]) => `## ${route}\n\n\`\`\`\n${help.trimEnd()}\n\`\`\``,
  )
  return `${head}\n\n${sections.join('\n\n')}\n`
}

const head = `# The command line

Written from the commands' own help by \`node scripts/docs-cli.ts\`; a test fails when it is not current.

Every command takes \`--json\` for its result as data, and \`--help\`. Progress is shown on a terminal only; \`NO_COLOR\` turns
colours off. \`PORTAL_HOME\` names the data directory. A control plane is started by the command that needs one.

| exit code | what it says |
|---|---|
| 0 | done |
| 1 | failed; for \`portal move\` also: there is no better place |
| 2 | what was typed makes no sense; the nearest known is named |
| 3 | refused: a checkpoint cannot carry values, each named on stderr and in \`--json\` |
| 4 | there is no such job, output, offer or machine |
| 5 | no control plane can be reached |
| 75 | \`portal run\`: the job was suspended |
| 130 | let go of by Ctrl-C; what was asked goes on |
| other | \`portal run\`: the job's own; 128 and the number of the signal that ended it |`
