/** OpenAPI 3.1 from the route table: served at `/api/openapi.json`, saved as `docs/openapi.json`. */
import { z } from 'zod'
import { errors, type ErrorCode } from './errors.ts'
import type { RouteName } from './paths.ts'
import { commonErrors, routes, type AnyRoute } from './routes.ts'
import { errorView } from './schemas.ts'

type Json = Readonly<Record<string, unknown>>

/** @param version Portal's own */
export function openapiDocument(version: string): Json {
  const schemas: Record<string, unknown> = {}
  const paths: Record<string, Record<string, unknown>> = {}
  for (const name of Object.keys(routes) as RouteName[]) {
    const route: AnyRoute = routes[name]
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    const method = route.method.toLowerCase()
    const before = paths[path]?.[method] as Json | undefined
    const now = operation(route, schemas)
    paths[path] = { ...paths[path], [method]: before ? together(before, now) : now }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Portal',
      version,
      description:
        'Instants are ms since 1970 UTC, durations ms, sizes bytes, money decimal strings with a currency. ' +
        'Streams are server-sent events and go on after Last-Event-ID.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        person: { type: 'http', scheme: 'bearer', description: 'the token in the file `token` of the data directory' },
        agent: { type: 'http', scheme: 'bearer', description: "the token of an agent's own machine" },
      },
    },
  }
}

function operation(route: AnyRoute, schemas: Record<string, unknown>): Json {
  return {
    operationId: route.name,
    summary: route.says,
    ...(route.role === 'anyone' ? { security: [] } : { security: [{ [route.role]: [] }] }),
    parameters: [
      ...parametersOf('path', route.params, schemas),
      ...parametersOf('query', route.query, schemas),
      ...(route.gives === 'sse'
        ? [{ name: 'last-event-id', in: 'header', schema: { type: 'string' }, description: 'go on behind this event' }]
        : []),
    ],
    ...(route.body
      ? { requestBody: { content: { 'application/json': { schema: schemaOf(route.body, 'input', schemas) } } } }
      : {}),
    ...(route.upload
      ? {
          requestBody: {
            required: true,
            content: { [route.upload.type]: { schema: { type: 'string', format: 'binary' } } },
          },
        }
      : {}),
    responses: { [route.status]: answerOf(route, schemas), ...errorsOf(route, schemas) },
  }
}

function answerOf(route: AnyRoute, schemas: Record<string, unknown>): Json {
  const description = route.says
  if (route.events) {
    const events = Object.entries(route.events).map(([event, schema]) => ({
      title: event,
      type: 'object',
      properties: { event: { const: event }, data: schemaOf(schema, 'output', schemas) },
    }))
    return { description, content: { 'text/event-stream': { schema: { type: 'array', items: { anyOf: events } } } } }
  }
  if (route.bytes) return { description, content: { [route.bytes]: { schema: { type: 'string', format: 'binary' } } } }
  if (route.gives === 'nothing') return { description }
  const schema = route.response ? schemaOf(route.response, 'output', schemas) : { type: 'object' }
  return { description, content: { 'application/json': { schema } } }
}

function errorsOf(route: AnyRoute, schemas: Record<string, unknown>): Json {
  const common = route.role === 'anyone' ? [] : commonErrors
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of [...route.errors, ...common])
    byStatus.set(errors[code].status, [...(byStatus.get(errors[code].status) ?? []), code])
  const schema = schemaOf(errorView, 'output', schemas)
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      { description: codes.map((code) => `\`${code}\``).join(', '), content: { 'application/json': { schema } } },
    ]),
  )
}

/** Two routes of one path and method: a stream, and with `once=true` what there is as JSON. */
function together(once: Json, stream: Json): Json {
  const answers = (operation: Json) => (operation['responses'] as Record<string, Json>)['200'] ?? {}
  const parameters = [
    { name: 'once', in: 'query', schema: { type: 'boolean' }, description: 'what there is, as JSON, not as a stream' },
    ...(stream['parameters'] as Json[]),
  ]
  const content = { ...(answers(stream)['content'] as Json), ...(answers(once)['content'] as Json) }
  const responses = { ...(stream['responses'] as Json), 200: { ...answers(stream), content } }
  return { ...stream, parameters, responses }
}

function parametersOf(
  where: 'path' | 'query',
  schema: z.ZodType | undefined,
  schemas: Record<string, unknown>,
): Json[] {
  if (!schema) return []
  const { properties = {}, required = [] } = schemaOf(schema, 'input', schemas) as {
    properties?: Record<string, Json>
    required?: readonly string[]
  }
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    schema,
  }))
}

/** A schema as JSON Schema; what has an id becomes a component, and is referred to. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', schemas: Record<string, unknown>): Json {
  const {
    $defs,
    $schema: _,
    ...rest
  } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Record<string, unknown> & {
    $defs?: Record<string, unknown>
  }
  for (const [id, definition] of Object.entries($defs ?? {})) schemas[id] = rewritten(definition)
  const id = rest['id']
  if (typeof id !== 'string') return rewritten(rest) as Json
  schemas[id] = rewritten(rest)
  return { $ref: `#/components/schemas/${id}` }
}

/** `#/$defs/X` → `#/components/schemas/X`, without zod's own `id`s. */
function rewritten(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rewritten)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, inner]) => key !== '$schema' && !(key === 'id' && typeof inner === 'string'))
      .map(([key, inner]) => [
        key,
        key === '$ref' && typeof inner === 'string'
          ? inner.replace('#/$defs/', '#/components/schemas/')
          : rewritten(inner),
      ]),
  )
}
