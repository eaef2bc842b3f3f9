import { logBytes } from '../../contract/client.ts'
import type { Cli } from '../context.ts'
import { following } from '../control/follow.ts'
import { reach } from '../control/reach.ts'
import { define, flag, json } from '../define.ts'
import { jobArgument } from '../jobs.ts'
import { whole } from '../parse.ts'
import { pass } from '../streams.ts'
import { Tail } from '../tail.ts'

interface Flags {
  readonly follow?: boolean
  readonly tail?: number
  readonly json?: boolean
}

export const command = define<Flags, [string]>({
  brief: "Print a job's log, or follow it",
  about:
    'Prints the log of a job over all its attempts, as it wrote it. With --follow it goes on until the job ends or is suspended; Ctrl-C only stops following.',
  examples: [
    ['portal logs nightly', 'all of it'],
    ['portal logs -f --tail 20 nightly', 'its last 20 lines, and what comes'],
  ],
  parameters: {
    flags: {
      follow: flag('go on until the job ends or is suspended'),
      tail: {
        kind: 'parsed',
        parse: whole(0, 1_000_000),
        brief: 'only the last so many lines of what there is',
        placeholder: 'LINES',
        optional: true,
      },
      json,
    },
    aliases: { f: 'follow', n: 'tail' },
    positional: { kind: 'tuple', parameters: [jobArgument] },
  },
  async run(cli, { follow, tail, json: asJson }, ref) {
    const client = await reach(cli)
    const job = await client.job({ params: { ref } })
    const bytes = await client.readLog({ params: { ref: job.id }, signal: cli.interrupted })
    const lines = new Tail(tail ?? null, (piece) => write(cli, piece, asJson === true))
    let read = 0
    for await (const piece of bytes) {
      read += (piece as Buffer).length
      await lines.add(piece as Buffer)
    }
    await lines.flush()
    if (!follow) return
    let skip = read
    const stream = following(cli, client, (to, behind) =>
      to.followLog({ params: { ref: job.id }, signal: cli.interrupted, ...behind }),
    )
    for await (const event of stream) {
      if (event.event !== 'log') {
        if (asJson) cli.print(JSON.stringify({ end: event.data }))
        continue
      }
      const piece = logBytes(event.data)
      if (skip < piece.length) await write(cli, piece.subarray(skip), asJson === true)
      skip = Math.max(0, skip - piece.length)
    }
    return cli.interrupted.aborted ? 130 : 0
  },
})

/** Bytes as they are, held back while the reader is slow; as JSON, one object a piece. */
const write = async (cli: Cli, piece: Buffer, asJson: boolean): Promise<void> => {
  if (asJson) cli.print(JSON.stringify({ log: piece.toString('utf8') }))
  else await pass(process.stdout, piece)
}
