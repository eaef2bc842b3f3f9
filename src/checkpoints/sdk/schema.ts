import { z } from 'zod'
import type { Json, SavedValue } from '../chain/model.ts'
import { agentStream } from '../outputs/stream.ts'
import { FrameError, type Frame } from './frames.ts'

/** What a job's SDK may say. Fields that are not known are left out: an SDK may be newer than its agent. */
const text = (most: number) => z.string().max(most)
const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
// it comes from JSON.parse, so it is JSON already
const json = z.unknown().transform((value) => (value ?? null) as Json)

const refused = z
  .array(z.object({ path: text(8192), type: text(1024), reason: text(8192), advice: text(8192) }))
  .max(1001)
const values: z.ZodType<SavedValue[]> = z
  .array(z.object({ path: text(8192), kind: text(1024), bytes: count }))
  .max(200_000)

const said = {
  hello: z.object({
    protocol: z.number(),
    sdk: z.enum(['python', 'node']),
    version: text(128),
    pid: count,
    environment: json,
    again: z.boolean().default(false),
    waiting: z.boolean().default(false),
    turn: count.default(0),
    digest: text(256).nullish(),
  }),
  restored: z.object({ digest: text(256) }),
  'restore-refused': z.object({ values: refused.default([]), why: text(8192).default('the values cannot be taken') }),
  'safe-point': z.object({ turn: count, asks: z.enum(['checkpoint']).nullish() }),
  probed: z.object({ id: count, bytes: count, objects: count, ms: z.number().min(0) }),
  refused: z.object({ id: count, values: refused }),
  save: z.object({
    id: count,
    values,
    environment: json,
    meta: json,
    streams: z
      .array(
        z.object({
          name: z
            .string()
            .regex(/^[a-z][a-z0-9._-]{0,63}$/)
            .refine((name) => !agentStream(name)),
          bytes: count,
        }),
      )
      .max(32),
  }),
  saved: z.object({ id: count, digest: text(256) }),
} as const

type Said = typeof said
export type Saying = { [T in keyof Said]: { readonly t: T } & Readonly<z.infer<Said[T]>> }[keyof Said]

/** A frame as one of the things that may be said now; anything else ends the connection. Throws `FrameError`. */
export const parseSaying = <T extends Saying['t']>(frame: Frame, ...due: readonly T[]): Extract<Saying, { t: T }> => {
  const { t, ...rest } = frame.meta
  if (!(due as readonly string[]).includes(t))
    throw new FrameError(`the job said ${JSON.stringify(t.slice(0, 40))} where ${due.join(' or ')} was due`)
  const parsed = said[t as T].safeParse(rest)
  if (!parsed.success)
    throw new FrameError(`the job’s ${t} is not as agreed: ${z.prettifyError(parsed.error).slice(0, 300)}`)
  return { t, ...parsed.data } as unknown as Extract<Saying, { t: T }>
}

/** The meta of a `chunks` frame, of which there are hundreds a second: looked at by hand. Throws `FrameError`. */
export const parseChunks = (
  { meta }: Frame,
  due: { readonly id: number; readonly stream: string; readonly first: number },
): { readonly lengths: readonly number[]; readonly sha256: readonly (string | null)[] } => {
  const { id, stream, first, bytes, sha256 } = meta
  if (id !== due.id || stream !== due.stream || first !== due.first)
    throw new FrameError(
      `the job sent chunk ${String(first).slice(0, 20)} of ${String(stream).slice(0, 70)} where chunk ${due.first} of ${due.stream} was due`,
    )
  if (
    !Array.isArray(bytes) ||
    !Array.isArray(sha256) ||
    bytes.length !== sha256.length ||
    bytes.length < 1 ||
    bytes.length > 64
  )
    throw new FrameError('the job sent chunks without a length and a hash for each, or not 1 to 64 of them')
  for (let i = 0; i < bytes.length; i++)
    if (!Number.isInteger(bytes[i]) || (sha256[i] !== null && typeof sha256[i] !== 'string'))
      throw new FrameError('the job sent chunks whose lengths or hashes are none')
  return { lengths: bytes as number[], sha256: sha256 as (string | null)[] }
}
