import {
  array,
  asyncProperty,
  assert,
  constantFrom,
  dictionary,
  json,
  oneof,
  record,
  string,
  type Arbitrary,
} from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { paths } from '../../contract/paths.ts'
import { errorView } from '../../contract/schemas.ts'
import { jobView, serveMemory, token, type Served } from './testing.ts'

let served: Served
beforeAll(async () => {
  served = await serveMemory({ times: { heartbeatMs: 20, stallMs: 100 } })
  served.memory.jobs.set('job-1', jobView('job-1', 'nightly', ['a']))
  served.memory.end()
})
afterAll(() => served.close())

const authorization = `Bearer ${token}`
const post = (path: string, body: string, headers: Record<string, string> = {}) =>
  fetch(served.server.url + path, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', ...headers },
    body,
  })

/** Every answer is what the table promises, or an error of the catalogue: never `internal`, never something else. */
async function wellBehaved(response: Response): Promise<number> {
  const text = await response.text()
  expect([response.status, text].join(' ')).not.toMatch(/^5/)
  if (response.status < 400) return response.status
  const checked = errorView.safeParse(JSON.parse(text))
  expect([response.status, checked.success]).toEqual([response.status, true])
  return response.status
}

const posts = Object.values(paths).filter(({ method, path }) => method === 'POST' && !path.endsWith('/shutdown'))
const postPath = constantFrom(...posts.map(({ path }) => path.replace(':ref', 'nightly')))
const words = constantFrom(
  'command',
  'env',
  'needs',
  'cpus',
  'on',
  'settings',
  'machine',
  'offer',
  '__proto__',
  'constructor',
)
const values: Arbitrary<unknown> = oneof(
  json().map((text) => JSON.parse(text) as unknown),
  array(string()),
  string(),
)

test('any JSON to any route is answered in the one shape', async () => {
  const bodies = oneof(
    json(),
    dictionary(oneof(words, string()), values).map((value) => JSON.stringify(value)),
    record({ command: array(string()), env: dictionary(string(), string()), needs: values }).map((v) =>
      JSON.stringify(v),
    ),
  )
  const property = asyncProperty(postPath, bodies, async (path, body) => {
    await wellBehaved(await post(path, body))
  })
  await assert(property, { numRuns: 150 })
})

test('any path and query is answered in the one shape', async () => {
  const parts = oneof(
    string(),
    constantFrom('..', '%00', '%2e%2e', '%ff', 'nightly', 'jobs', 'log', 'events', '.', '~'),
  )
  const path = array(parts, { maxLength: 4 })
  const query = dictionary(oneof(string(), constantFrom('after', 'limit', 'from', 'path', 'once')), string())
  const property = asyncProperty(path, query, async (path, query) => {
    const search = new URLSearchParams({ ...query, once: 'true' })
    const url = new URL(`${served.server.url}/api/jobs/${path.map(encodeURIComponent).join('/')}?${search.toString()}`)
    await wellBehaved(await fetch(url, { headers: { authorization } }))
  })
  await assert(property, { numRuns: 150 })
})

test.for(['after', '-1', '1:-1', '999999999999999999999999', '1:2:3', 'ΩΩ', '1e3', ' '])(
  'Last-Event-ID %j is no position',
  async (id) => {
    const headers = { authorization, 'last-event-id': encodeURI(id) }
    for (const path of ['/api/jobs/nightly/log/follow', '/api/jobs/nightly/events'])
      expect(await wellBehaved(await fetch(served.server.url + path, { headers }))).toBe(400)
  },
)

test('nesting without end is refused, and nothing falls over', async () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
  expect(await wellBehaved(await post('/api/jobs', deep))).toBe(400)
  const inside = `{"command":["a"],"env":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`
  expect(await wellBehaved(await post('/api/jobs', inside))).toBe(400)
})

test('names of the language are no names here', async () => {
  const body = '{"command":["a"],"env":{"__proto__":"x","constructor":"y"},"settings":{"__proto__":"z"}}'
  await wellBehaved(await post('/api/jobs', body))
  expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  expect(Object.prototype.toString.call({})).toBe('[object Object]')
})

test('a stream is not asked for by HEAD', async () => {
  for (const path of ['/api/events', '/api/jobs/nightly/log', '/api/jobs/nightly/log/follow']) {
    const { status } = await fetch(served.server.url + path, { method: 'HEAD', headers: { authorization } })
    expect(status).toBe(405)
  }
})
