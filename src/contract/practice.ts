/** The controls of the practice cloud: they play the provider. */
import { z } from 'zod'
import { moneyView, type Wire } from './schemas.ts'

const line = z.string().min(1).max(300)
const machine = line.describe("a machine's id, an attempt's id, or the name of the job on it")
const pool = line.describe('an offer, or a pattern that begins some: `practice/north-1`')
const duration = z.int().min(0).max(86_400_000).describe('ms')

export const noticeRequest = z
  .strictObject({ machine, length: duration.optional().describe("ms until it is taken; left out: the offer's own") })
  .meta({
    id: 'PracticeNotice',
    description: 'Tells a machine that it will be taken, and takes it when the time is over.',
  })
export const reclaimRequest = z
  .strictObject({ machine })
  .meta({ id: 'PracticeReclaim', description: 'Takes a machine at once, without a notice.' })
export const withdrawRequest = z
  .strictObject({ machine })
  .meta({ id: 'PracticeWithdraw', description: 'Takes back a notice that was not carried out yet.' })
export const priceRequest = z
  .strictObject({
    offer: pool,
    amount: moneyView.shape.amount.nullable().describe('an hour; null: the market makes the price again'),
    ttl: duration.optional().describe('ms that it holds; left out: until it is set again'),
  })
  .meta({ id: 'PracticePrice' })
export const capacityRequest = z
  .strictObject({
    offer: pool,
    machines: z.int().min(0).max(100_000).nullable().describe('null: as many as asked for'),
  })
  .meta({ id: 'PracticeCapacity' })
export const quotaRequest = z
  .strictObject({ region: line, cpus: z.number().min(0).max(1e6).nullable().describe('null: no limit') })
  .meta({ id: 'PracticeQuota' })
export const lifetimeRequest = z
  .strictObject({ offer: pool, lifetime: duration.nullable().describe('ms, for those that run too; null: for ever') })
  .meta({ id: 'PracticeLifetime' })
export const noticeLengthRequest = z
  .strictObject({ offer: pool, length: duration.nullable().describe('ms; null: no notice at all') })
  .meta({ id: 'PracticeNoticeLength', description: 'How long before it is taken a machine of these offers is told.' })
export const resetRequest = z
  .strictObject({})
  .meta({ id: 'PracticeReset', description: 'Market, capacity and quota as they were at first; machines stay.' })

export type PracticeAct =
  | ({ readonly do: 'notice' } & Wire<z.output<typeof noticeRequest>>)
  | ({ readonly do: 'reclaim' } & Wire<z.output<typeof reclaimRequest>>)
  | ({ readonly do: 'withdraw' } & Wire<z.output<typeof withdrawRequest>>)
  | ({ readonly do: 'price' } & Wire<z.output<typeof priceRequest>>)
  | ({ readonly do: 'capacity' } & Wire<z.output<typeof capacityRequest>>)
  | ({ readonly do: 'quota' } & Wire<z.output<typeof quotaRequest>>)
  | ({ readonly do: 'lifetime' } & Wire<z.output<typeof lifetimeRequest>>)
  | ({ readonly do: 'notice-length' } & Wire<z.output<typeof noticeLengthRequest>>)
  | { readonly do: 'reset' }

export const practiceView = z
  .strictObject({
    market: z.array(
      z.strictObject({
        offer: line,
        price: moneyView,
        capacity: z.int().min(0).nullable().describe('machines that there are; null: as many as asked for'),
        used: z.int().min(0),
        notice: z.int().min(0).nullable(),
        lifetime: z.int().min(0).nullable(),
      }),
    ),
    quotas: z.array(z.strictObject({ region: line, cpus: z.number().nullable(), used: z.number() })),
    machines: z.array(
      z.strictObject({
        id: line,
        offer: line,
        state: z.enum(['booting', 'running', 'ending', 'ended']),
        because: z.string().max(60).nullable().describe('why it ended'),
        attempt: z.string().max(120).nullable(),
        startedAt: z.int().min(0),
        endedAt: z.int().min(0).nullable(),
        noticeEndsAt: z.int().min(0).nullable(),
      }),
    ),
  })
  .meta({ id: 'Practice', description: 'The practice cloud: its market and its machines.' })
export type PracticeView = Wire<z.output<typeof practiceView>>
