/** Places where jobs can run, and the control plane itself. */
import { z } from 'zod'
import {
  bytes,
  duration,
  facts,
  gpus,
  instant,
  line,
  moneyView,
  sentence,
  sha256,
  whyView,
  type Got,
} from './values.ts'

const offerView = z
  .strictObject({
    id: line(300).describe('the spelling that pins a job'),
    connection: line(100),
    provider: line(100),
    region: z.string().max(100),
    zone: z.string().max(100),
    type: z.string().max(100),
    market: z.enum(['spot', 'on-demand', 'owned']),
    price: moneyView.describe('an hour'),
    notice: duration.nullable().describe('null: none'),
    lifetime: duration.nullable().describe('null: not limited'),
    cpus: z.number(),
    memoryBytes: bytes,
    gpus: gpus.nullable(),
    fits: z.boolean().describe('what was asked for'),
    leftOut: whyView.nullable().describe('why it is not taken though it fits: no capacity, reclaimed lately'),
  })
  .meta({ id: 'Offer', description: 'Where a job could run now.' })
export type OfferView = Got<typeof offerView>

export const offersView = z
  .strictObject({
    at: instant,
    offers: z.array(offerView).describe('cheapest first'),
    failed: z.array(z.strictObject({ connection: line(100), problem: sentence })).describe('who could not be asked'),
  })
  .meta({ id: 'Offers' })
export type OffersView = Got<typeof offersView>

export const connectionsView = z
  .strictObject({
    connections: z.array(
      z.strictObject({
        id: line(100),
        provider: line(100),
        committed: moneyView.describe('spent and set aside together'),
        cap: moneyView.nullable(),
        machines: z.int().min(0).describe('alive now'),
        problem: sentence.nullable().describe('why it cannot be used now'),
      }),
    ),
  })
  .meta({ id: 'Connections' })
export type ConnectionsView = Got<typeof connectionsView>

export const doctorView = z
  .strictObject({
    checks: z.array(
      z.strictObject({
        name: line(100),
        is: z.enum(['good', 'warning', 'broken']),
        sentence,
        advice: sentence.nullable(),
        facts,
      }),
    ),
  })
  .meta({ id: 'Doctor', description: 'What the control plane knows of itself.' })
export type DoctorView = Got<typeof doctorView>

export const healthView = z
  .strictObject({
    ok: z.literal(true),
    version: line(60),
    installation: line(60),
    pid: z.int().min(1),
    startedAt: instant,
  })
  .meta({ id: 'Health' })
export type HealthView = Got<typeof healthView>

export const shutdownView = z
  .strictObject({
    jobs: z.array(z.strictObject({ name: line(63), hardStopAt: instant.nullable() })),
    sentence: sentence.describe('what becomes of the jobs that run'),
  })
  .meta({ id: 'Shutdown' })
export type ShutdownView = Got<typeof shutdownView>

export const storedView = z.strictObject({ sha256, bytes }).meta({ id: 'Stored', description: 'What was kept.' })
export const outputsStoredView = z.strictObject({ bytes }).meta({ id: 'OutputsStored' })
