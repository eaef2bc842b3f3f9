import type { Market } from '../../../core/jobs/model.ts'
import { day, second, type Duration } from '../../../core/time/index.ts'

export interface MachineType {
  readonly name: string
  readonly cpus: number
  readonly memoryBytes: number
  /** what an hour of it costs on demand where prices are ordinary, micros */
  readonly micros: number
}

export interface Region {
  readonly name: string
  readonly zones: readonly string[]
  /** its prices against ordinary ones */
  readonly dearness: number
  /** how long before a spot machine is taken it is told */
  readonly notice: Duration
  /** after this long every machine is ended, as some clouds do; null: never */
  readonly lifetime: Duration | null
  /** CPUs that one account may have at a time */
  readonly quota: number
}

/** What can be rented at one price: `region/zone/type/market`. */
export interface Pool {
  readonly id: string
  readonly region: Region
  readonly zone: string
  readonly type: MachineType
  readonly market: Exclude<Market, 'owned'>
}

const gib = 2 ** 30

const types: readonly MachineType[] = [
  { name: 'small', cpus: 1, memoryBytes: 2 * gib, micros: 40_000 },
  { name: 'medium', cpus: 2, memoryBytes: 4 * gib, micros: 80_000 },
  { name: 'large', cpus: 4, memoryBytes: 16 * gib, micros: 190_000 },
]

/** One region for each kind of trouble: an ordinary one, one with short notices, one whose machines have a fixed lifetime. */
export const regions: readonly Region[] = [
  {
    name: 'north-1',
    zones: ['north-1a', 'north-1b'],
    dearness: 1,
    notice: 120 * second,
    lifetime: null,
    quota: 64,
  },
  { name: 'south-1', zones: ['south-1a'], dearness: 0.96, notice: 30 * second, lifetime: null, quota: 32 },
  { name: 'west-1', zones: ['west-1a'], dearness: 0.92, notice: 120 * second, lifetime: day, quota: 32 },
]

/** Machines of a pool that there are at a time, unless somebody says otherwise. */
export const ordinaryCapacity = 16

export const pools: readonly Pool[] = regions.flatMap((region) =>
  region.zones.flatMap((zone) =>
    types.flatMap((type) =>
      (['spot', 'on-demand'] as const).map((market) => ({
        id: `${region.name}/${zone}/${type.name}/${market}`,
        region,
        zone,
        type,
        market,
      })),
    ),
  ),
)
