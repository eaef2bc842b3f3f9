import type { OfferView } from '../../contract/schemas.ts'
import type { Cli } from '../context.ts'
import { reach } from '../control/reach.ts'
import { define, flag, json } from '../define.ts'
import { count, duration, plain, price, size } from '../format.ts'
import { needFlags, type NeedFlags } from '../needs.ts'
import { table } from '../table.ts'

interface Flags extends NeedFlags {
  readonly all?: boolean
  readonly json?: boolean
}

export const command = define<Flags>({
  brief: 'List where a job could run, and at what price',
  about:
    'Lists the offers that fit what is asked for, cheapest first; with --all those too that do not fit or are left out now, each with why.',
  examples: [
    ['portal offers', 'everything that could be started now'],
    ['portal offers --on practice --cpu 4 --memory 8GiB', 'what of one connection fits'],
    ['portal offers --all', 'what is left out, and why'],
  ],
  parameters: {
    flags: { ...needFlags, all: flag('those too that do not fit or are left out now'), json },
    aliases: { a: 'all' },
  },
  async run(cli, { on, cpu, memory, disk, gpu, image, all, json: asJson }) {
    const client = await reach(cli)
    const view = await client.offers({
      query: {
        ...(on === undefined ? {} : { on }),
        ...(cpu === undefined ? {} : { cpus: cpu }),
        ...(memory === undefined ? {} : { memoryBytes: memory }),
        ...(disk === undefined ? {} : { diskBytes: disk }),
        ...(gpu === undefined ? {} : { gpuModel: gpu.model, gpuCount: gpu.count }),
        ...(image === undefined ? {} : { image }),
      },
    })
    const shown = all ? view.offers : view.offers.filter(({ fits, leftOut }) => fits && leftOut === null)
    if (asJson) cli.json({ ...view, offers: shown })
    else {
      cli.print(shown.length === 0 ? 'no offer fits' : render(cli, shown))
      const hidden = view.offers.length - shown.length
      if (hidden > 0) cli.note(cli.errorColors.dim(`${count(hidden, 'offer')} left out; --all shows them and why`))
    }
    for (const { connection, problem } of view.failed)
      cli.note(`${cli.errorColors.yellow('warning')} ${plain(connection)} could not be asked: ${plain(problem)}`)
  },
})

const render = (cli: Cli, offers: readonly OfferView[]): string =>
  table(
    offers,
    [
      { title: 'OFFER', cell: ({ id }) => id },
      { title: 'PRICE/H', cell: (offer) => price(offer.price), align: 'right' },
      { title: 'CPUS', cell: ({ cpus }) => String(cpus), align: 'right' },
      { title: 'MEMORY', cell: ({ memoryBytes }) => size(memoryBytes), align: 'right' },
      { title: 'GPUS', cell: ({ gpus }) => gpus && `${gpus.model}:${gpus.count}` },
      {
        title: 'NOTICE',
        cell: ({ notice, market }) =>
          market === 'owned' ? 'never taken' : notice === null ? 'none' : duration(notice),
      },
      { title: 'ENDS AFTER', cell: ({ lifetime }) => (lifetime === null ? '' : duration(lifetime)) },
      {
        title: 'LEFT OUT',
        cell: ({ fits, leftOut }) => leftOut?.sentence ?? (fits ? '' : 'does not fit'),
        paint: cli.colors.yellow,
      },
    ],
    { width: cli.width, title: cli.colors.dim },
  )
