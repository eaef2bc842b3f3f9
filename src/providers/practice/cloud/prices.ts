import { hour, minute, type Duration, type Instant } from '../../../core/time/index.ts'
import type { Pool } from './catalogue.ts'

/** Prices stay what they are for this long, so that one that was just looked up is still the price. */
export const priceStep: Duration = 5 * minute

/**
 * What an hour in a pool costs at a time, micros: a pure function of seed, pool and time, so that what was seen once can be
 * seen again. On demand it is the list price, which changes by a little every few weeks. On the spot market it wanders
 * between a fifth and the whole of that: slowly over days, faster over an hour, and now and then a crowded evening.
 */
export function priceAt(seed: number, pool: Pool, at: Instant): number {
  const then = Math.floor(at / priceStep) * priceStep
  const listed = pool.type.micros * pool.region.dearness * (0.98 + 0.04 * noise(seed, pool.type.name, then, 500 * hour))
  if (pool.market === 'on-demand') return rounded(listed)
  const wander =
    0.3 * noise(seed, `${pool.id} days`, then, 30 * hour) + 0.12 * noise(seed, `${pool.id} hour`, then, hour)
  const crowd = Math.max(0, noise(seed, `${pool.id} crowd`, then, 7 * hour) - 0.85) * 3
  return Math.min(rounded(listed), rounded(listed * (0.2 + wander + crowd)))
}

/**
 * When machines of a pool are taken between two times (`from` exclusive, `to` inclusive), at this rate an hour. Pure as the
 * prices are: each five minutes hold an interruption or none.
 */
export function interruptionsBetween(
  { seed, pool, perHour }: { readonly seed: number; readonly pool: string; readonly perHour: number },
  from: Instant,
  to: Instant,
): readonly Instant[] {
  if (perHour <= 0 || to <= from) return []
  const found: Instant[] = []
  const chance = Math.min(1, (perHour * priceStep) / hour)
  for (let step = Math.floor(from / priceStep); step <= Math.floor(to / priceStep); step++) {
    if (draw(seed, `${pool} taken`, step) >= chance) continue
    const at = Math.floor((step + draw(seed, `${pool} when`, step)) * priceStep)
    if (at > from && at <= to) found.push(at)
  }
  return found
}

/** Prices in hundredths of a cent. */
const rounded = (micros: number): number => Math.round(micros / 100) * 100

/** A smooth curve through random points a period apart, within 0 and 1. */
function noise(seed: number, name: string, at: Instant, period: Duration): number {
  const step = Math.floor(at / period)
  const part = at / period - step
  const ease = part * part * (3 - 2 * part)
  return draw(seed, name, step) * (1 - ease) + draw(seed, name, step + 1) * ease
}

/** A number within 0 and 1 (exclusive) that looks random and is always the same for the same arguments. */
function draw(seed: number, name: string, step: number): number {
  let hash = 0x811c9dc5
  for (const text of [String(seed), name, String(step)])
    for (let i = 0; i <= text.length; i++)
      hash = Math.imul(hash ^ (i < text.length ? text.charCodeAt(i) : 0xff), 0x01000193)
  // the low bits of neighbouring steps are alike until they are mixed
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
