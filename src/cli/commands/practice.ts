import { buildRouteMap } from '@stricli/core'
import type { Client } from '../../contract/client.ts'
import type { PracticeView } from '../../contract/practice.ts'
import type { Cli } from '../context.ts'
import { reach } from '../control/reach.ts'
import { define, json, text } from '../define.ts'
import { ago, duration, price } from '../format.ts'
import { milliseconds, whole } from '../parse.ts'
import { table } from '../table.ts'

interface Json {
  readonly json?: boolean
}

const machine = {
  parse: text,
  brief: "a machine's id, an attempt's, or the name of the job on it",
  placeholder: 'MACHINE',
} as const
const pool = { parse: text, brief: 'an offer, or a pattern that begins some', placeholder: 'OFFER' } as const

const market = define<Json>({
  brief: 'Show its prices, capacity, notices and quotas',
  examples: [['portal practice market', 'what it sells now, and at what price']],
  parameters: { flags: { json } },
  async run(cli, flags) {
    const view = await (await reach(cli)).practice()
    if (flags.json) cli.json({ market: view.market, quotas: view.quotas })
    else showMarket(cli, view)
  },
})

const machines = define<Json>({
  brief: 'Show its machines',
  examples: [['portal practice machines', 'which run, for whom, and until when']],
  parameters: { flags: { json } },
  async run(cli, flags) {
    const view = await (await reach(cli)).practice()
    if (flags.json) cli.json({ machines: view.machines })
    else showMachines(cli, view)
  },
})

const notice = define<Json & { readonly length?: number }, [string]>({
  brief: 'Tell a machine that it will be taken, and take it then',
  examples: [
    ['portal practice notice nightly', "the machine of a job, with its offer's own notice"],
    ['portal practice notice nightly --length 10s', 'a shorter one'],
  ],
  parameters: {
    flags: {
      length: {
        kind: 'parsed',
        parse: milliseconds,
        brief: "until it is taken; left out: the offer's own",
        placeholder: 'DURATION',
        optional: true,
      },
      json,
    },
    positional: { kind: 'tuple', parameters: [machine] },
  },
  async run(cli, flags, name) {
    const client = await reach(cli)
    const view = await client.practiceNotice({
      body: { machine: name, ...(flags.length === undefined ? {} : { length: flags.length }) },
    })
    if (flags.json) return cli.json(view)
    await showMachine(cli, client, view, name)
  },
})

const withdraw = define<Json, [string]>({
  brief: 'Take a notice back',
  examples: [['portal practice withdraw nightly', 'its machine stays after all']],
  parameters: { flags: { json }, positional: { kind: 'tuple', parameters: [machine] } },
  async run(cli, flags, name) {
    const client = await reach(cli)
    const view = await client.practiceWithdraw({ body: { machine: name } })
    if (flags.json) cli.json(view)
    else await showMachine(cli, client, view, name)
  },
})

const reclaim = define<Json, [string]>({
  brief: 'Take a machine at once, without a notice',
  examples: [['portal practice reclaim nightly', 'the machine of a job is gone']],
  parameters: { flags: { json }, positional: { kind: 'tuple', parameters: [machine] } },
  async run(cli, flags, name) {
    const client = await reach(cli)
    const view = await client.practiceReclaim({ body: { machine: name } })
    if (flags.json) cli.json(view)
    else await showMachine(cli, client, view, name)
  },
})

const setPrice = define<Json, [string, string]>({
  brief: 'Set the price of offers',
  examples: [['portal practice price practice/north-1 0.05', 'everything of a region at 0.05 an hour']],
  parameters: {
    flags: { json },
    positional: {
      kind: 'tuple',
      parameters: [pool, { parse: amount, brief: 'the price of an hour', placeholder: 'AMOUNT' }],
    },
  },
  async run(cli, flags, offer, hourly) {
    const view = await (await reach(cli)).practicePrice({ body: { offer, amount: hourly } })
    if (flags.json) cli.json(view)
    else showMarket(cli, view, offer)
  },
})

const capacity = define<Json, [string, number | null]>({
  brief: 'Set how many machines there are of some offers',
  examples: [
    ['portal practice capacity practice/north-1 0', 'nothing more to be had of a region'],
    ['portal practice capacity practice/north-1 any', 'as many as are asked for'],
  ],
  parameters: {
    flags: { json },
    positional: {
      kind: 'tuple',
      parameters: [pool, { parse: orAny(whole(0, 100_000)), brief: 'how many, or any', placeholder: 'MACHINES' }],
    },
  },
  async run(cli, flags, offer, machines) {
    const view = await (await reach(cli)).practiceCapacity({ body: { offer, machines } })
    if (flags.json) cli.json(view)
    else showMarket(cli, view, offer)
  },
})

const quota = define<Json, [string, number | null]>({
  brief: 'Set how many CPUs this account may have in a region',
  examples: [
    ['portal practice quota north-1 8', 'at most 8 CPUs'],
    ['portal practice quota north-1 any', 'no limit'],
  ],
  parameters: {
    flags: { json },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: text, brief: 'a region of the practice cloud', placeholder: 'REGION' },
        { parse: orAny(whole(0, 1_000_000)), brief: 'how many, or any', placeholder: 'CPUS' },
      ],
    },
  },
  async run(cli, flags, region, cpus) {
    const view = await (await reach(cli)).practiceQuota({ body: { region, cpus } })
    if (flags.json) cli.json(view)
    else showMarket(cli, view)
  },
})

const reset = define<Json>({
  brief: 'Set market, capacity and quota back; machines stay',
  examples: [['portal practice reset', 'as it was at first']],
  parameters: { flags: { json } },
  async run(cli, flags) {
    const view = await (await reach(cli)).practiceReset({ body: {} })
    if (flags.json) cli.json(view)
    else showMarket(cli, view)
  },
})

export const command = buildRouteMap<string, Cli>({
  routes: { market, machines, notice, withdraw, reclaim, price: setPrice, capacity, quota, reset },
  docs: {
    brief: 'Play the provider of the practice cloud',
    fullDescription:
      'The practice cloud runs real machines, as agents and processes of their own, on this one. Here its provider is played: notices, reclaims, prices, capacity and quota.',
  },
})

function amount(input: string): string {
  if (!/^\d{1,9}(\.\d{1,6})?$/.test(input)) throw new RangeError(`${JSON.stringify(input)} is not an amount like 0.05`)
  return input
}

function orAny(parse: (input: string) => number): (input: string) => number | null {
  return (input) => (input === 'any' ? null : parse(input))
}

const showMarket = (cli: Cli, { market: rows, quotas }: PracticeView, only = ''): void => {
  const { dim } = cli.colors
  const shown = rows.filter(({ offer }) => only === '' || offer.startsWith(only.split('*')[0] as string))
  cli.print(
    table(
      shown.length === 0 ? rows : shown,
      [
        { title: 'OFFER', cell: ({ offer }) => offer },
        { title: 'PRICE/H', cell: (row) => price(row.price), align: 'right' },
        { title: 'CAPACITY', cell: (row) => (row.capacity === null ? 'any' : String(row.capacity)), align: 'right' },
        { title: 'NOTICE', cell: (row) => (row.notice === null ? 'none' : duration(row.notice)), align: 'right' },
        { title: 'ENDS AFTER', cell: ({ lifetime }) => (lifetime === null ? '' : duration(lifetime)), align: 'right' },
      ],
      { width: cli.width, title: dim },
    ),
  )
  if (only === '' && quotas.length > 0)
    cli.print(
      `\n${table(
        quotas,
        [
          { title: 'REGION', cell: ({ region }) => region },
          { title: 'CPUS USED', cell: ({ used }) => String(used), align: 'right' },
          { title: 'QUOTA', cell: ({ cpus }) => (cpus === null ? 'any' : String(cpus)), align: 'right' },
        ],
        { width: cli.width, title: dim },
      )}`,
    )
}

/** The machine that was meant: by its own id, an attempt's, or its job's newest. */
const showMachine = async (cli: Cli, client: Client, view: PracticeView, name: string): Promise<void> => {
  const named = view.machines.filter(({ id, attempt }) => id === name || attempt === name)
  if (named.length > 0) return showMachines(cli, { ...view, machines: named })
  const { id } = await client.job({ params: { ref: name } })
  const last = view.machines.findLast(({ attempt }) => attempt?.startsWith(`${id}.`))
  showMachines(cli, { ...view, machines: last ? [last] : view.machines })
}

const showMachines = (cli: Cli, { machines: rows }: PracticeView): void => {
  if (rows.length === 0) {
    cli.print('the practice cloud runs no machines')
    return
  }
  const now = cli.now()
  cli.print(
    table(
      rows,
      [
        { title: 'MACHINE', cell: ({ id }) => id },
        { title: 'STATE', cell: ({ state }) => state },
        { title: 'OFFER', cell: ({ offer }) => offer },
        { title: 'ATTEMPT', cell: ({ attempt }) => attempt },
        { title: 'STARTED', cell: ({ startedAt }) => ago(startedAt, now) },
        { title: 'TAKEN', cell: ({ noticeEndsAt }) => (noticeEndsAt === null ? '' : ago(noticeEndsAt, now)) },
      ],
      { width: cli.width, title: cli.colors.dim },
    ),
  )
}
