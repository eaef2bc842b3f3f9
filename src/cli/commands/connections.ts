import { reach } from '../control/reach.ts'
import { define, json } from '../define.ts'
import { money } from '../format.ts'
import { table } from '../table.ts'

export const command = define<{ readonly json?: boolean }>({
  brief: 'List the places that are connected',
  about: 'Lists the accounts and own machines that jobs can run on, what is spent and set aside there, and their caps.',
  examples: [
    ['portal connections', 'what is connected'],
    ['portal connections --json', 'the same for a script'],
  ],
  parameters: { flags: { json } },
  async run(cli, flags) {
    const client = await reach(cli)
    const view = await client.connections()
    if (flags.json) return cli.json(view)
    cli.print(
      table(
        view.connections,
        [
          { title: 'NAME', cell: ({ id }) => id },
          { title: 'PROVIDER', cell: ({ provider }) => provider },
          { title: 'MACHINES', cell: ({ machines }) => String(machines), align: 'right' },
          { title: 'COMMITTED', cell: ({ committed }) => money(committed), align: 'right' },
          { title: 'CAP', cell: ({ cap }) => (cap === null ? 'none' : money(cap)), align: 'right' },
          { title: 'PROBLEM', cell: ({ problem }) => problem },
        ],
        { width: cli.width, title: cli.colors.dim },
      ),
    )
  },
})
