import { readFile } from 'node:fs/promises'
import { second, type Instant } from '../../../core/time/index.ts'

import { messageOf } from '../../files.ts'
import { pools } from './catalogue.ts'

/** Prices by pool as they were written down, rising in time. */
export type Trace = ReadonlyMap<string, readonly { readonly at: Instant; readonly micros: number }[]>

/**
 * Reads a trace: CSV with the columns `time,pool,price`. `time` is an ISO instant, or `+SECONDS` after the trace was begun;
 * `pool` is `region/zone/type/market`; `price` an amount an hour. Empty lines and lines that begin with `#` are left out.
 * Throws a RangeError that names the line.
 */
export function parseTrace(text: string, begun: Instant, pools: readonly string[]): Trace {
  const trace = new Map<string, { at: Instant; micros: number }[]>()
  const [header, ...rows] = text
    .split(/\r?\n/)
    .map((line, index) => ({ line: line.trim(), number: index + 1 }))
    .filter(({ line }) => line !== '' && !line.startsWith('#'))
  if (header?.line.replaceAll(' ', '') !== 'time,pool,price')
    throw new RangeError('line 1: a trace begins with the line "time,pool,price"')
  for (const { line, number } of rows) {
    const [time = '', pool = '', price = '', ...more] = line.split(',').map((field) => field.trim())
    const at = instantOf(time, begun)
    const micros = Math.round(Number(price) * 1e6)
    if (more.length > 0 || price === '') throw new RangeError(`line ${number}: three fields are expected: ${line}`)
    if (at === null)
      throw new RangeError(`line ${number}: ${JSON.stringify(time)} is no time: an ISO instant, or +SECONDS`)
    if (!pools.includes(pool)) throw new RangeError(`line ${number}: there is no pool ${JSON.stringify(pool)}`)
    if (!(micros > 0)) throw new RangeError(`line ${number}: ${JSON.stringify(price)} is no price`)
    const known = trace.get(pool) ?? []
    known.push({ at, micros })
    trace.set(pool, known)
  }
  for (const known of trace.values()) known.sort((a, b) => a.at - b.at)
  return trace
}

/** Reads the trace of a file; null: there is none to read. Throws a RangeError that names the file. */
export async function readTrace(path: string | null, begun: Instant): Promise<Trace | null> {
  if (path === null) return null
  try {
    const known = pools.map(({ id }) => id)
    return parseTrace(await readFile(path, 'utf8'), begun, known)
  } catch (error) {
    throw new RangeError(`the trace ${path} cannot be used: ${messageOf(error)}`, { cause: error })
  }
}

/** The newest price written down at or before that time; the first one before that; null where the trace has nothing of the pool. */
export function tracedPrice(trace: Trace, pool: string, at: Instant): number | null {
  const known = trace.get(pool)
  if (known === undefined) return null
  return (known.findLast((one) => one.at <= at) ?? known[0])?.micros ?? null
}

function instantOf(time: string, begun: Instant): Instant | null {
  const at = time.startsWith('+') ? begun + Number(time.slice(1) || Number.NaN) * second : Date.parse(time)
  return Number.isFinite(at) ? Math.round(at) : null
}
