import type { z } from 'zod'
import { portalError, type PortalError } from '../../contract/errors.ts'
import { nearest } from '../../core/text.ts'

interface Problem {
  /** `needs.cpus`, `command[0]`, or the name of the whole part */
  readonly place: string
  /** `expected a number above 0` */
  readonly problem: string
}

/** Checks a part of a request; throws `invalid_request` with the first problem in its sentence and all in its facts. */
export function checked<S extends z.ZodType>(schema: S, value: unknown, whole: string): z.output<S> {
  const result = schema.safeParse(value, { reportInput: true })
  if (result.success) return result.data
  throw invalid(result.error.issues.slice(0, 20).map((issue) => problemOf(schema, issue, whole)))
}

function invalid(problems: readonly Problem[]): PortalError {
  const [first] = problems
  return portalError('invalid_request', {
    place: first?.place ?? 'the request',
    problem: first?.problem ?? 'it cannot be understood',
    problems,
  })
}

type Issue = z.core.$ZodIssue

function problemOf(schema: z.ZodType, issue: Issue, whole: string): Problem {
  const place = placeOf(issue.path) || whole
  if (issue.code !== 'unrecognized_keys') return { place, problem: sentenceOf(issue) }
  // cut: a hostile key is neither echoed in full nor compared letter by letter
  const key = (issue.keys[0] ?? '').slice(0, 60)
  const known = keysAt(schema, issue.path)
  const near = nearest(key, known)
  return {
    place: placeOf([...issue.path, key]),
    problem: near
      ? `there is no such key; the nearest is ${near}`
      : `there is no such key; known are ${known.join(', ')}`,
  }
}

function sentenceOf(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return `missing: expected ${article(issue.expected)}`
      return `expected ${article(issue.expected)}`
    case 'too_small':
      return `expected ${sizeOf(issue.origin, issue.inclusive ? 'at least' : 'above', Number(issue.minimum))}`
    case 'too_big':
      return `expected ${sizeOf(issue.origin, issue.inclusive ? 'at most' : 'below', Number(issue.maximum))}`
    case 'invalid_value':
      return `expected ${issue.values.map(String).join(' or ')}`
    case 'invalid_union':
      return `expected ${[...new Set(issue.errors.map(([first]) => (first ? sentenceOf(first) : 'something else').replace(/^expected /, '')))].join(' or ')}`
    case 'invalid_key':
    case 'invalid_element':
      return issue.issues[0] ? `its name: ${sentenceOf(issue.issues[0])}` : issue.message
    default:
      // ours, written into the schema as what is expected
      return `expected ${issue.message}`
  }
}

const articles: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a number',
  string: 'text',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}
const article = (type: string): string => articles[type] ?? type

function sizeOf(origin: string, bound: string, limit: number): string {
  if (origin === 'string')
    return limit === 1 && bound === 'at least' ? 'text that is not empty' : `${bound} ${limit} characters`
  if (origin === 'array')
    return limit === 1 && bound === 'at least' ? 'a list that is not empty' : `${bound} ${limit} items`
  return `a number ${bound === 'above' || bound === 'below' ? bound : `of ${bound}`} ${limit}`
}

const placeOf = (path: readonly PropertyKey[]): string =>
  path
    .map((part, index) =>
      typeof part === 'number' ? `[${part}]` : `${index > 0 ? '.' : ''}${String(part).slice(0, 60)}`,
    )
    .join('')

/** The keys that the object at this place of a schema knows. */
function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let at: unknown = schema
  for (const part of [...path, null]) {
    at = unwrapped(at)
    const { def } = at as { def: { shape?: Record<string, unknown>; element?: unknown; valueType?: unknown } }
    if (part === null) return Object.keys(def.shape ?? {})
    at = def.shape?.[String(part)] ?? def.element ?? def.valueType
    if (at === undefined) return []
  }
  return []
}

function unwrapped(schema: unknown): unknown {
  let at = schema
  for (;;) {
    const { innerType } = (at as { def: { innerType?: unknown } }).def
    if (innerType === undefined) return at
    at = innerType
  }
}
