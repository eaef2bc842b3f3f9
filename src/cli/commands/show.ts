import type { JobView } from '../../contract/schemas.ts'
import type { Cli } from '../context.ts'
import { reach } from '../control/reach.ts'
import { define, json } from '../define.ts'
import { ago, clock, duration, plain, shellWords, size } from '../format.ts'
import { refusedLines } from '../failure.ts'
import { bindingText, jobArgument, paintState, progressText, spentText, stateText } from '../jobs.ts'
import { facts } from '../table.ts'

export const command = define<{ readonly json?: boolean }, [string]>({
  brief: 'Show one job',
  about: 'Shows where a job is, what it did and cost, and how its state would be carried.',
  examples: [
    ['portal show nightly', 'everything about one job'],
    ['portal show nightly --json | jq .state', 'one field of it'],
  ],
  parameters: { flags: { json }, positional: { kind: 'tuple', parameters: [jobArgument] } },
  async run(cli, flags, ref) {
    const client = await reach(cli)
    const job = await client.job({ params: { ref } })
    if (flags.json) cli.json(job)
    else cli.print(describe(cli, job))
  },
})

/** A job in full, one fact a line. */
export const describe = (cli: Cli, job: JobView): string => {
  const now = cli.now()
  const { colors } = cli
  const { checkpoint, exit, move, wish } = job
  const head = facts(
    [
      ['name', colors.bold(job.name)],
      [
        'state',
        `${paintState(stateText(job), colors)}, since ${clock(job.stateSince, now)} (${ago(job.stateSince, now)})`,
      ],
      ['why', job.why && plain(job.why.sentence)],
      ['command', plain(shellWords(job.command))],
      ['where', job.offer === null ? null : plain(job.offer)],
      ['placement', bindingText(job)],
      ['attempt', job.attempt === null ? null : String(job.attempt)],
      ['progress', progressText(job)],
      ['ran', job.ran > 0 ? duration(job.ran) : null],
      ['spent', spentText(job)],
      [
        'checkpoint',
        checkpoint &&
          `slot ${checkpoint.slot}, ${size(checkpoint.bytes)}, ${ago(checkpoint.savedAt, now)}${checkpoint.verified ? ', verified' : ', not yet verified'}${checkpoint.method ? `, by ${checkpoint.method}` : ''}`,
      ],
      ['under way', move && `${move.kind}${move.to === null ? '' : ` to ${plain(move.to)}`}: ${plain(move.step)}`],
      [
        'asked for',
        wish &&
          `${wish.to}${wish.on === null ? '' : ` to ${plain(wish.on)}`} by ${plain(wish.by)}, ${ago(wish.at, now)}`,
      ],
      [
        'unheard',
        job.unreachableSince === null
          ? null
          : `since ${clock(job.unreachableSince, now)} (${ago(job.unreachableSince, now)})`,
      ],
      ['exit', exit && (exit.signal === null ? `code ${exit.code ?? '?'}` : `signal ${plain(exit.signal)}`)],
      [
        'resumable',
        job.resumableUntil === null
          ? null
          : `until ${clock(job.resumableUntil, now)} (${ago(job.resumableUntil, now)})`,
      ],
      // where a resume is possible as long as the checkpoint is kept, once is enough
      [
        'expires',
        job.expiresAt === null || job.expiresAt === job.resumableUntil
          ? null
          : `${clock(job.expiresAt, now)} (${ago(job.expiresAt, now)})`,
      ],
      ['created', `${clock(job.createdAt, now)} (${ago(job.createdAt, now)})`],
      ['id', plain(job.id)],
    ],
    colors.dim,
  )
  const warnings = job.warnings.map(({ sentence }) => `${colors.yellow('warning')} ${plain(sentence)}`)
  const refused =
    job.refused.length === 0
      ? []
      : [colors.red('cannot be carried'), ...refusedLines(job.refused).map((line) => `  ${line}`)]
  return [head, ...warnings, ...refused].join('\n')
}
