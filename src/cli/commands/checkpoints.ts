import { reach } from '../control/reach.ts'
import { define, json } from '../define.ts'
import { refusedLines } from '../failure.ts'
import { ago, size } from '../format.ts'
import { jobArgument } from '../jobs.ts'
import { table } from '../table.ts'

const ways = {
  sdk: 'its state is carried by the values that it named (SDK)',
  files: 'its state is carried by the files that it writes',
  process: 'its state is carried as the whole process',
  none: 'no way of carrying its state: it can run, and is refused a move',
} as const

export const command = define<{ readonly json?: boolean }, [string]>({
  brief: "List a job's checkpoints",
  about:
    'Lists the checkpoints of a job, newest first: which one a resume goes on from, how large, until when, and what one taken now would be refused for.',
  examples: [
    ['portal checkpoints nightly', 'what a resume could go on from'],
    ['portal checkpoints nightly --json', 'the same for a script'],
  ],
  parameters: { flags: { json }, positional: { kind: 'tuple', parameters: [jobArgument] } },
  async run(cli, flags, ref) {
    const client = await reach(cli)
    const view = await client.checkpoints({ params: { ref } })
    if (flags.json) return cli.json(view)
    const now = cli.now()
    cli.print(
      view.method === null ? 'how its state is carried is not known yet: it has not connected' : ways[view.method],
    )
    if (view.checkpoints.length > 0)
      cli.print(
        table(
          view.checkpoints,
          [
            { title: 'SLOT', cell: ({ slot }) => String(slot), align: 'right' },
            { title: 'ATTEMPT', cell: ({ attempt }) => String(attempt), align: 'right' },
            { title: 'SAVED', cell: ({ savedAt }) => ago(savedAt, now) },
            { title: 'SIZE', cell: ({ bytes }) => size(bytes), align: 'right' },
            { title: 'STORED', cell: ({ storedBytes }) => size(storedBytes), align: 'right' },
            { title: 'VERIFIED', cell: ({ verifiedAt }) => (verifiedAt === null ? 'no' : ago(verifiedAt, now)) },
            { title: 'EXPIRES', cell: ({ expiresAt }) => (expiresAt === null ? null : ago(expiresAt, now)) },
            { title: 'BASE', cell: ({ base }) => (base ? 'resumes from here' : '') },
          ],
          { width: cli.width, title: cli.colors.dim },
        ),
      )
    if (view.refused.length > 0) {
      cli.print(cli.colors.red('a checkpoint taken now would be refused:'))
      for (const line of refusedLines(view.refused)) cli.print(`  ${line}`)
    }
  },
})
