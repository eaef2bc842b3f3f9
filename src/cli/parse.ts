import { didYouMean, nearest } from './nearest.ts'

/** Texts that were typed, made into values. What makes no sense throws a RangeError of one sentence. */

const factors: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  TiB: 1024 ** 4,
}

/** `64MiB`, `32GB`, `1.5 GiB` as bytes. */
export const bytes = (input: string): number => {
  const match = /^(\d+(?:\.\d+)?)\s*([A-Za-z]+)$/.exec(input.trim())
  if (!match) throw new RangeError(`${quote(input)} is not a size like 64MiB or 32GB`)
  const [, number, unit] = match as unknown as [string, string, string]
  const factor = Object.hasOwn(factors, unit) ? factors[unit] : undefined
  if (factor === undefined)
    throw new RangeError(
      `${quote(input)} has no unit that is known${didYouMean(nearest(unit, Object.keys(factors), 2))}`,
    )
  const value = Math.round(Number(number) * factor)
  if (value < 1 || !Number.isSafeInteger(value)) throw new RangeError(`${quote(input)} is not a size that can be had`)
  return value
}

/** CPU cores: `2`, `0.5`. */
export const cpus = (input: string): number => {
  const value = /^\d+(\.\d+)?$/.test(input) ? Number(input) : Number.NaN
  if (!(value > 0 && value <= 4096))
    throw new RangeError(`${quote(input)} is not a number of CPU cores from 0.01 to 4096`)
  return value
}

/** `A100` or `A100:2`. */
export const gpus = (input: string): { readonly model: string; readonly count: number } => {
  const match = /^([A-Za-z0-9][\w.-]{0,59})(?::(\d{1,2}))?$/.exec(input)
  const count = Number(match?.[2] ?? 1)
  if (!match || count < 1 || count > 64)
    throw new RangeError(`${quote(input)} is not a GPU like A100 or A100:2 (1 to 64)`)
  return { model: match[1] as string, count }
}

/** A whole number within a range. */
export const whole =
  (min: number, max: number) =>
  (input: string): number => {
    const value = /^\d{1,15}$/.test(input) ? Number(input) : Number.NaN
    if (!(value >= min && value <= max))
      throw new RangeError(`${quote(input)} is not a whole number from ${min} to ${max}`)
    return value
  }

const durationUnits: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `30s`, `15m`, `72h`, `7d` as ms. */
export const milliseconds = (input: string): number => {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(input.trim())
  if (!match) throw new RangeError(`${quote(input)} is not a length of time like 30s, 15m, 72h or 7d`)
  return Math.round(Number(match[1]) * (durationUnits[match[2] as string] as number))
}

/** `KEY=VALUE` pairs as a record; the last of a key counts. `KEY` alone takes its value from `inherited`, as docker does. */
export const pairs = (
  inputs: readonly string[],
  what: string,
  inherited: Readonly<Record<string, string | undefined>> | null = null,
): Record<string, string> => {
  const record: Record<string, string> = Object.create(null) as Record<string, string>
  for (const input of inputs) {
    const cut = input.indexOf('=')
    const key = cut < 0 ? input : input.slice(0, cut)
    const value = cut < 0 ? inherited?.[key] : input.slice(cut + 1)
    if (key === '' || value === undefined)
      throw new RangeError(
        `${quote(input)} is not ${what}${cut < 0 && inherited ? `, and ${key} is not set here` : ''}`,
      )
    record[key] = value
  }
  return { ...record }
}

/** `JOB:PATH`; a path may contain colons, a job's name cannot. */
export const jobAndPath = (input: string): { readonly job: string; readonly path: string } => {
  const cut = input.indexOf(':')
  if (cut < 1) throw new RangeError(`${quote(input)} is not JOB:PATH; to take all outputs leave the path empty (JOB:)`)
  return { job: input.slice(0, cut), path: input.slice(cut + 1).replace(/^(\.\/)+|\/+$/g, '') }
}

const quote = (input: string): string => JSON.stringify(input.length > 60 ? `${input.slice(0, 60)}…` : input)
