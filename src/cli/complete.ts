import { proposeCompletions } from '@stricli/core'
import { application } from './app.ts'
import { commandNames, isCommand } from './commands/index.ts'
import { makeContext } from './context.ts'
import { leanOutput } from './streams.ts'

/** Longer than this nobody waits at the tab key. */
const limit_ms = 1000

/**
 * Answers a shell: one completion a line, with what it is. Quiet whatever happens; nothing is started for it.
 *
 * @param words what was typed after `portal`, the unfinished word last
 */
export const complete = async (words: readonly string[]): Promise<void> => {
  const end = setTimeout(() => process.exit(0), limit_ms)
  end.unref()
  const [first] = words
  // behind the command's own words the shell completes files
  if (first === 'run' && words.slice(0, -1).includes('--')) return
  const cli = await makeContext(
    { stdout: leanOutput(1, () => process.stdout), stderr: leanOutput(2, () => process.stderr) },
    process.env,
    process.cwd(),
    new AbortController().signal,
  )
  try {
    const loaded = words.length > 1 && first !== undefined && isCommand(first) ? [first] : []
    const { app } = await application(words.length > 1 ? loaded : commandNames.slice(0, 0))
    const found = await proposeCompletions(app, words.length === 0 ? [''] : words, cli)
    for (const { completion, brief } of found) cli.print(`${completion}\t${brief}`)
  } catch {
    // no completion is better than an error in the middle of a line
  }
}
