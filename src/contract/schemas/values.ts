/** What the schemas are made of: small values that appear in many of them. */
import { z } from 'zod'

/** Values as they are sent: nobody changes them on the way. */
export type Wire<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends readonly (infer E)[]
    ? readonly Wire<E>[]
    : { readonly [K in keyof T]: Wire<T[K]> }
/** What the control plane gets: checked, with defaults filled in. */
export type Got<S extends z.ZodType> = Wire<z.output<S>>
/** What a caller writes: defaults may be left out. */
export type Sent<S extends z.ZodType> = Wire<z.input<S>>

export const instant = z.int().min(0).describe('ms since 1970 UTC')
export const duration = z.int().min(0).describe('ms')
export const bytes = z
  .int()
  .min(0)
  .max(2 ** 53 - 1)
export const line = (max: number) => z.string().min(1).max(max)
export const sentence = z.string().max(4000)
/** Numbers and words behind a reason or an event, in the units that their names say. */
export const facts = z.record(z.string().max(100), z.unknown())

export const limits = {
  /** of a JSON request body, bytes */
  body: 1024 * 1024,
  /** of the archive of a working directory, bytes */
  workdir: 1024 ** 3,
  /** of an attempt's outputs, bytes */
  outputs: 64 * 1024 ** 3,
} as const

export const jobName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/, 'small letters, digits, dots and dashes, 1 to 63 of them')
  .describe("a job's name: what people type")
export const jobRef = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "a job's name, its beginning or its id")
  .describe("a job's name, a beginning of it that no other has, or its id")
export const sha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'a sha256: 64 small hexadecimal digits')
  .describe('sha256, hex')
export const pattern = line(300)
  .regex(/^[^\s\p{Cc}]+$/u, 'a pattern without spaces')
  .describe('narrows placement (`aws/us-east-1`), or spells out one offer')

export const moneyView = z
  .strictObject({
    amount: z.string().regex(/^-?\d{1,9}(\.\d{1,6})?$/, 'an amount with at most six decimal places, like 12.50'),
    currency: z.string().regex(/^[A-Z]{3}$/, 'a currency of three capital letters, like USD'),
  })
  .meta({ id: 'Money', description: 'An amount as a decimal string, with its currency.' })

export const whyView = z
  .strictObject({ code: line(100), sentence, facts })
  .meta({ id: 'Why', description: 'A reason: its code, its sentence, and the numbers behind it.' })
export type WhyView = Got<typeof whyView>

export const gpus = z
  .strictObject({ model: line(60), count: z.int().min(1).max(64) })
  .meta({ id: 'Gpus', description: 'GPUs of one model.' })

export const exitView = z
  .strictObject({ code: z.int().nullable(), signal: z.string().max(20).nullable(), at: instant })
  .meta({ id: 'Exit', description: 'How a process ended: with a code, or by a signal.' })
export type ExitView = Got<typeof exitView>

export const refusedValue = z
  .strictObject({ path: z.string().max(8000), type: z.string().max(2000), reason: sentence, advice: sentence })
  .meta({ id: 'RefusedValue', description: 'A value that a checkpoint cannot carry: where, what, why, what to do.' })

export const errorView = z
  .strictObject({
    error: z.strictObject({ code: line(100), message: sentence, advice: sentence, facts }),
  })
  .meta({ id: 'Error', description: 'The one shape of every error: what happened, what to do, and the facts.' })
