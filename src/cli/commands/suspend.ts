import { reach } from '../control/reach.ts'
import { define, flag, json } from '../define.ts'
import { duration, size } from '../format.ts'
import { jobArgument, noteWarnings } from '../jobs.ts'
import { outcomeOf, stepTimes } from '../outcome.ts'

interface Flags {
  readonly noWait?: boolean
  readonly json?: boolean
}

export const command = define<Flags, [string]>({
  brief: 'Save a running job and stop it, to go on later',
  about:
    'Saves the state of a running job at its next safe point and stops it; `portal resume` goes on from there. Where a value cannot be carried it is named, and the job runs on (exit code 3).',
  examples: [
    ['portal suspend nightly', 'save it, and wait until it is safe'],
    ['portal suspend nightly --no-wait', 'ask for it and go on'],
  ],
  parameters: {
    flags: { noWait: flag('do not wait for the outcome'), json },
    positional: { kind: 'tuple', parameters: [jobArgument] },
  },
  async run(cli, { noWait, json: asJson }, ref) {
    const client = await reach(cli)
    const asked = await client.suspend({ params: { ref }, body: {} })
    if (noWait) {
      if (asJson) cli.json(asked)
      else cli.print(`${asked.job.name} is asked to suspend; see with \`portal show ${asked.job.name}\``)
      return
    }
    const { job, by, events } = await outcomeOf(cli, client, 'suspend', asked)
    if (asJson) return cli.json({ job, steps: stepTimes(events) })
    noteWarnings(cli, job)
    const began = events[0]?.at ?? by.at
    const saved = job.checkpoint ? `, ${size(job.checkpoint.bytes)} saved` : ''
    cli.print(
      `${job.name} is suspended${saved} in ${duration(by.at - began)}; go on with \`portal resume ${job.name}\``,
    )
  },
})
