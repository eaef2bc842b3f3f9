import { reach } from '../control/reach.ts'
import { define, flag, json } from '../define.ts'
import { clock } from '../format.ts'
import { jobArgument } from '../jobs.ts'
import { outcomeOf } from '../outcome.ts'

interface Flags {
  readonly now?: boolean
  readonly noWait?: boolean
  readonly json?: boolean
}

export const command = define<Flags, [string]>({
  brief: 'End a job',
  about:
    'Asks a job to end (SIGTERM), and ends all its processes when its grace is over. Where its state can be carried a checkpoint is kept for 7 days, so that `portal resume` can still go on; --now leaves that out.',
  examples: [
    ['portal stop nightly', 'keep a checkpoint, then end it'],
    ['portal stop nightly --now', 'end it without saving'],
  ],
  parameters: {
    flags: { now: flag('without trying a checkpoint first'), noWait: flag('do not wait until it has ended'), json },
    positional: { kind: 'tuple', parameters: [jobArgument] },
  },
  async run(cli, { now, noWait, json: asJson }, ref) {
    const client = await reach(cli)
    const asked = await client.stop({ params: { ref }, body: { now: now === true } })
    if (noWait) {
      if (asJson) cli.json(asked)
      else cli.print(`${asked.job.name} is asked to stop`)
      return
    }
    const { job } = await outcomeOf(cli, client, 'stop', asked)
    if (asJson) return cli.json({ job })
    const kept =
      job.resumableUntil === null
        ? ''
        : `; \`portal resume ${job.name}\` can go on until ${clock(job.resumableUntil, cli.now())}`
    cli.print(job.state === 'stopped' ? `${job.name} is stopped${kept}` : `${job.name} had ended: it ${job.state}`)
  },
})
