import { reach } from '../control/reach.ts'
import { define, flag, json, value } from '../define.ts'
import { duration } from '../format.ts'
import { jobArgument } from '../jobs.ts'
import { needFlags, type NeedFlags } from '../needs.ts'
import { outcomeOf } from '../outcome.ts'
import { milliseconds, pairs } from '../parse.ts'
import { values } from '../define.ts'
import { typed } from '../settings.ts'

interface Flags extends Pick<NeedFlags, 'on' | 'cpu' | 'memory' | 'gpu'> {
  readonly ttl?: string
  readonly budget?: string
  readonly wait?: number
  readonly same?: boolean
  readonly set?: readonly string[]
  readonly follow?: boolean
  readonly noWait?: boolean
  readonly json?: boolean
}

export const command = define<Flags, [string]>({
  brief: 'Go on with a suspended job',
  about:
    'Places a suspended job anew, restores its newest checkpoint, verifies it, and lets it go on. Where that fails it stays suspended, its checkpoint kept, and the reason is said.',
  examples: [
    ['portal resume nightly', 'go on wherever it fits best'],
    ['portal resume nightly --on this-machine --follow', 'here, and follow its log'],
    ['portal resume nightly --memory 32GiB', 'with more memory than before'],
    ['portal resume nightly --wait 2h', 'wait up to two hours for a place'],
  ],
  parameters: {
    flags: {
      on: value('where: replaces the pattern or the pin it had', 'PATTERN'),
      cpu: needFlags.cpu,
      memory: needFlags.memory,
      gpu: needFlags.gpu,
      ttl: value('a time limit anew, as 24h, or off', 'DURATION'),
      budget: value('a budget anew, as "12.50 USD"', 'AMOUNT'),
      wait: {
        kind: 'parsed',
        parse: milliseconds,
        brief: 'wait this long for a place, as 2h',
        placeholder: 'DURATION',
        optional: true,
      },
      same: flag('insist on the same needs after running out of memory'),
      set: values('any setting by its key, as checkpoint.keep=7d', 'KEY=VALUE'),
      follow: flag('follow its log then, as `portal run` does'),
      noWait: flag('do not wait until it runs'),
      json,
    },
    aliases: { f: 'follow' },
    positional: { kind: 'tuple', parameters: [jobArgument] },
  },
  async run(cli, flags, ref) {
    const settings = typed(() => pairs(flags.set ?? [], 'KEY=VALUE of a setting'))
    const client = await reach(cli)
    const { on, cpu, memory, gpu, ttl, budget, wait, same } = flags
    const asked = await client.resume({
      params: { ref },
      body: {
        ...(on === undefined ? {} : { on }),
        ...(cpu === undefined ? {} : { cpus: cpu }),
        ...(memory === undefined ? {} : { memoryBytes: memory }),
        ...(gpu === undefined ? {} : { gpus: gpu }),
        ...(ttl === undefined ? {} : { ttl }),
        ...(budget === undefined ? {} : { budget }),
        ...(wait === undefined ? {} : { wait }),
        same: same === true,
        settings,
      },
    })
    const { name } = asked.job
    if (flags.follow) {
      const { followJob } = await import('../follow-job.ts')
      return followJob(cli, client, asked.job, { after: asked.after, asJson: flags.json === true, fromNow: true })
    }
    if (flags.noWait) {
      if (flags.json) cli.json(asked)
      else cli.print(`${name} is asked to resume; see with \`portal show ${name}\``)
      return
    }
    const { job, by, events } = await outcomeOf(cli, client, 'resume', asked)
    if (flags.json) return cli.json({ job })
    const began = events[0]?.at ?? by.at
    cli.print(
      `${name} goes on at ${job.offer ?? 'an unknown place'} after ${duration(by.at - began)}; follow it with \`portal logs -f ${name}\``,
    )
  },
})
