import { reach } from '../control/reach.ts'
import { define, flag, json, value } from '../define.ts'
import { duration } from '../format.ts'
import { jobArgument, noteWarnings } from '../jobs.ts'
import { outcomeOf, stepTimes } from '../outcome.ts'

interface Flags {
  readonly on?: string
  readonly noWait?: boolean
  readonly json?: boolean
}

export const command = define<Flags, [string]>({
  brief: 'Move a running job to another machine',
  about:
    'Moves a running job with its state to another machine: to the cheapest that fits, or to where --on says. Where no place is better it says so (exit code 1); where a value cannot be carried it is named and the job runs on (exit code 3).',
  examples: [
    ['portal move nightly', 'to the best other place, if there is one'],
    ['portal move nightly --on practice/north-2', 'to the cheapest of a region'],
    ['portal move nightly --no-wait', 'ask for it and go on'],
  ],
  parameters: {
    flags: {
      on: value('where to: a connection, a region …, or one offer', 'PATTERN'),
      noWait: flag('do not wait for the outcome'),
      json,
    },
    positional: { kind: 'tuple', parameters: [jobArgument] },
  },
  async run(cli, { on, noWait, json: asJson }, ref) {
    const client = await reach(cli)
    const asked = await client.move({ params: { ref }, body: on === undefined ? {} : { on } })
    if (noWait) {
      if (asJson) cli.json(asked)
      else cli.print(`${asked.job.name} is asked to move; see with \`portal show ${asked.job.name}\``)
      return
    }
    const from = asked.job.offer
    const { job, by, events } = await outcomeOf(cli, client, 'move', asked)
    const steps = stepTimes(events)
    if (asJson) return cli.json({ job, from, to: job.offer, steps })
    noteWarnings(cli, job)
    const began = events[0]?.at ?? by.at
    const parts = steps.map(({ step, ms }) => `${step} ${duration(ms)}`).join(', ')
    cli.print(
      `${job.name} moved from ${from ?? 'nowhere'} to ${job.offer ?? 'nowhere'} in ${duration(by.at - began)}${parts === '' ? '' : ` (${parts})`}`,
    )
  },
})
