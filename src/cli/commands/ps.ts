import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../contract/client.ts'
import type { JobView } from '../../contract/schemas.ts'
import type { Cli } from '../context.ts'
import { reach } from '../control/reach.ts'
import { define, flag, json } from '../define.ts'
import { ago, shellWords } from '../format.ts'
import { paintState, progressText, spentText, stateText } from '../jobs.ts'
import { whole } from '../parse.ts'
import { table } from '../table.ts'

interface Flags {
  readonly all?: boolean
  readonly limit: number
  readonly watch?: boolean
  readonly json?: boolean
}

/** How often a watched list is drawn anew. */
const watchEvery_ms = 1000

export const command = define<Flags>({
  brief: 'List jobs',
  about: 'Lists the jobs that have not ended, newest first; with --all those that ended too.',
  examples: [
    ['portal ps', 'what runs, waits or is suspended'],
    ['portal ps --all --limit 5', 'the five newest, ended or not'],
    ['portal ps --json', 'the same for a script'],
  ],
  parameters: {
    flags: {
      all: flag('those that ended too'),
      limit: { kind: 'parsed', parse: whole(1, 1000), brief: 'at most so many', default: '50' },
      watch: flag('keep the list up to date until Ctrl-C'),
      json,
    },
    aliases: { a: 'all', n: 'limit', w: 'watch' },
  },
  async run(cli, flags) {
    const client = await reach(cli)
    if (flags.watch) return watch(cli, client, flags)
    const { jobs, more } = await client.jobs({ query: { all: flags.all, limit: flags.limit } })
    if (flags.json) cli.json({ jobs, more })
    else {
      cli.print(jobs.length === 0 ? emptyLine(flags) : render(cli, jobs))
      if (more)
        cli.note(cli.errorColors.dim(`older ones are left out; --limit ${Math.min(1000, flags.limit * 4)} shows more`))
    }
  },
})

const emptyLine = ({ all }: Flags): string =>
  all ? 'no jobs yet; start one with `portal run -- COMMAND`' : 'no jobs; `portal ps --all` lists those that ended'

const render = (cli: Cli, jobs: readonly JobView[]): string => {
  const now = cli.now()
  return table(
    jobs,
    [
      { title: 'NAME', cell: ({ name }) => name, shrinkTo: 12 },
      { title: 'STATE', cell: stateText, paint: (text) => paintState(text, cli.colors) },
      { title: 'SINCE', cell: ({ stateSince }) => ago(stateSince, now) },
      { title: 'PROGRESS', cell: progressText, align: 'right' },
      { title: 'WHERE', cell: ({ offer }) => offer, shrinkTo: 16 },
      { title: 'SPENT', cell: spentText, align: 'right' },
      { title: 'COMMAND', cell: ({ command: words }) => shellWords(words).slice(0, 200), shrinkTo: 8 },
    ],
    { width: cli.width, title: cli.colors.dim },
  )
}

const watch = async (cli: Cli, client: Client, flags: Flags): Promise<void> => {
  while (!cli.interrupted.aborted) {
    const { jobs } = await client.jobs({ query: { all: flags.all, limit: flags.limit } })
    if (flags.json) cli.print(JSON.stringify({ at: cli.now(), jobs }))
    else {
      const clear = cli.width === null ? '' : '\x1b[H\x1b[2J'
      cli.print(`${clear}${jobs.length === 0 ? emptyLine(flags) : render(cli, jobs)}`)
    }
    await sleep(watchEvery_ms, undefined, { signal: cli.interrupted }).catch(() => {})
  }
}
