import { request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createClient } from '../../contract/client.ts'
import type { PortalError } from '../../contract/errors.ts'
import { serveMemory, token, agentToken, type Served } from './testing.ts'

let served: Served
beforeAll(async () => {
  served = await serveMemory()
})
afterAll(() => served.close())
beforeEach(() => {
  served.memory.jobs.clear()
  served.memory.events.length = 0
})

const bearer = { authorization: `Bearer ${token}` }
const jsonType = { 'content-type': 'application/json' }

/** A request as it is, past the typed client. */
async function raw(path: string, init: RequestInit & { headers?: Record<string, string> } = {}) {
  const response = await fetch(served.server.url + path, { ...init, headers: { ...bearer, ...init.headers } })
  const text = await response.text()
  return { status: response.status, body: (text ? JSON.parse(text) : null) as Answered, headers: response.headers }
}
interface Answered {
  readonly error: { readonly code: string; readonly message: string; readonly advice: string; readonly facts: unknown }
}
const post = (path: string, body: unknown) =>
  raw(path, { method: 'POST', headers: jsonType, body: JSON.stringify(body) })

/** fetch does not let the host header be chosen. */
const withHost = (host: string, headers: Record<string, string> = {}) =>
  new Promise<number>((resolve, reject) => {
    const { port } = new URL(served.server.url)
    const asking = request(
      { host: '127.0.0.1', port, path: '/api/health', headers: { host, ...headers } },
      (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      },
    )
    asking.on('error', reject)
    asking.end()
  })

const failure = async (promise: Promise<unknown>): Promise<PortalError> => {
  try {
    await promise
  } catch (error) {
    return error as PortalError
  }
  throw new Error('expected an error')
}

describe('who may call', () => {
  test('health needs no token', async () => {
    const health = await createClient({ url: served.server.url, token: null }).health()
    expect(health).toEqual({ ok: true, version: '1.2.3', installation: 'i-1', pid: process.pid, startedAt: 1 })
  })

  test.for([
    ['no token', null],
    ['a wrong token', 'x'],
    ["an agent's token", agentToken],
  ] as const)('%s is refused in one line that tells what to do', async ([, token]) => {
    const error = await failure(createClient({ url: served.server.url, token }).jobs())
    expect(error).toMatchObject({ code: 'unauthorized', status: 401 })
    expect(error.message).toContain('the file `token` of the data directory')
    expect(error.message).not.toContain('\n')
  })

  test("a person's token opens no agent's route", async () => {
    expect((await raw(`/api/agent/workdirs/${'0'.repeat(64)}`)).status).toBe(401)
  })

  test('a name made to point here is refused', async () => {
    const { port } = new URL(served.server.url)
    expect(await withHost(`evil.example:${port}`)).toBe(403)
    expect(await withHost('user@127.0.0.1')).toBe(400)
    expect(await withHost(`127.0.0.1.evil.example:${port}`)).toBe(403)
    expect(await withHost(`127.0.0.1:${port}`)).toBe(200)
    expect(await withHost(`LOCALHOST:${port}`)).toBe(200)
    expect(await withHost(`[::1]:${port}`)).toBe(200)
  })

  test('a page of elsewhere is refused, one of ours is not', async () => {
    const { port } = new URL(served.server.url)
    const host = `127.0.0.1:${port}`
    expect(await withHost(host, { origin: 'https://evil.example' })).toBe(403)
    expect(await withHost(host, { origin: 'null' })).toBe(403)
    expect(await withHost(host, { origin: 'http://127.0.0.1:1' })).toBe(403)
    expect(await withHost(host, { origin: `http://${host}` })).toBe(200)
  })
})

describe('what is refused, naming the place', () => {
  test.for([
    [{ command: ['a'], needs: { cpus: 0 } }, 'needs.cpus: expected a number above 0'],
    [{ command: ['a'], needs: { cpus: 'two' } }, 'needs.cpus: expected a number'],
    [{ command: ['a'], needs: { cpu: 2 } }, 'needs.cpu: there is no such key; the nearest is cpus'],
    [{ command: [] }, 'command: expected a list that is not empty'],
    [{ command: [''] }, 'command: expected the program to run comes first'],
    [{ command: ['a', 1] }, 'command[1]: expected text'],
    [{ command: ['a\0b'] }, 'command[0]: expected text without NUL'],
    [{ command: ['a\ud800'] }, 'command[0]: expected whole characters, not half of a surrogate pair'],
    [{ command: ['a'], env: JSON.parse('{"__proto__":"x"}') as unknown }, '__proto__: a key of this name is not taken'],
    [{}, 'command: missing: expected a list'],
    [[], 'the request body: expected an object'],
    [{ command: ['a'], workdir: 'abc' }, 'workdir: expected a sha256: 64 small hexadecimal digits'],
    [{ command: ['a'], outputs: ['../x'] }, 'outputs[0]: expected a path inside the working directory'],
    [{ command: ['a'], outputs: ['/etc'] }, 'outputs[0]: expected a path inside the working directory'],
    [{ command: ['a'], checkpoint: 'all' }, 'checkpoint: expected auto or sdk or none'],
    [{ command: ['a'], env: { 'A=B': '1' } }, 'env.A=B: its name: expected letters, digits and _'],
    [{ command: ['a'], name: 'Bad Name' }, 'name: expected small letters, digits, dots and dashes, 1 to 63 of them'],
    [
      { command: ['a'], x: 1 },
      'x: there is no such key; known are name, command, env, workdir, outputs, needs, on, checkpoint, settings',
    ],
  ] as const)('%j', async ([body, message]) => {
    const { status, body: answer } = await post('/api/jobs', body)
    expect(status).toBe(400)
    expect(answer.error.code).toBe('invalid_request')
    expect(answer.error.message).toBe(message)
  })

  test('a prototype is no way in', async () => {
    const text = '{"command":["a"],"__proto__":{"x":1}}'
    const { status } = await raw('/api/jobs', { method: 'POST', headers: jsonType, body: text })
    expect(status).toBe(400)
    expect((await raw('/api/jobs?__proto__=1')).status).toBe(400)
    expect(({} as { x?: number }).x).toBeUndefined()
  })

  test('a query: unknown key, wrong value, twice', async () => {
    const messages = await Promise.all(
      [
        '/api/jobs?limi=1',
        '/api/jobs?limit=x',
        '/api/jobs?limit=0',
        '/api/jobs?all=maybe',
        '/api/jobs?all=true&all=true',
      ].map(async (path) => (await raw(path)).body.error.message),
    )
    expect(messages).toEqual([
      'limi: there is no such key; the nearest is limit',
      'limit: expected a number',
      'limit: expected a number of at least 1',
      'all: expected true or false',
      'all: expected once, it is there twice',
    ])
  })

  test('what is not JSON', async () => {
    const bad = await raw('/api/jobs', { method: 'POST', headers: jsonType, body: '{"command":' })
    expect(bad.body.error.code).toBe('invalid_json')
    const type = await raw('/api/jobs', { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{}' })
    expect(type).toMatchObject({
      status: 415,
      body: { error: { message: 'this route takes application/json, not text/plain' } },
    })
    const bytes = await raw('/api/jobs', {
      method: 'POST',
      headers: jsonType,
      body: new Uint8Array([0x7b, 0xff, 0x7d]),
    })
    expect(bytes.body.error.code).toBe('invalid_json')
  })

  test('a giant body, declared or not', async () => {
    const giant = 'x'.repeat(3 * 1024 * 1024)
    const declared = await post('/api/jobs', { command: [giant] })
    expect(declared).toMatchObject({ status: 413, body: { error: { facts: { limitBytes: 1024 * 1024 } } } })
    const stream = new Blob([giant]).stream()
    const init = { method: 'POST', headers: jsonType, body: stream, duplex: 'half' } as RequestInit & {
      headers: Record<string, string>
    }
    expect((await raw('/api/jobs', init)).status).toBe(413)
    expect((await served.client.health()).ok).toBe(true)
  })

  test('a giant key is neither echoed nor compared for long', async () => {
    const begun = performance.now()
    const { body } = await post('/api/jobs', { command: ['a'], ['k'.repeat(900_000)]: 1 })
    expect(body.error.message.length).toBeLessThan(400)
    expect(performance.now() - begun).toBeLessThan(1000)
  })

  test('another address, another method', async () => {
    expect(await raw('/api/nothing')).toMatchObject({ status: 404, body: { error: { code: 'route_not_found' } } })
    const { status, body } = await raw('/api/jobs', { method: 'DELETE' })
    expect({ status, message: body.error.message, advice: body.error.advice }).toEqual({
      status: 405,
      message: '/api/jobs does not take DELETE',
      advice: 'It takes POST, GET.',
    })
    expect((await raw('/api/jobs/%00/explain')).status).toBe(400)
    expect((await raw('/api/jobs/%ff')).status).toBe(400)
  })

  test('what is no HTTP at all leaves the server as it was', async () => {
    const { port } = new URL(served.server.url)
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write('\x16\x03\x01 nonsense\r\n\r\n'))
      socket.on('close', () => resolve())
      socket.on('error', () => resolve())
      socket.resume()
    })
    expect((await served.client.health()).ok).toBe(true)
  })
})

describe('jobs', () => {
  test('is created, found, listed, explained', async () => {
    const job = await served.client.createJob({ body: { name: 'nightly', command: ['python3', 'train.py'] } })
    expect(job).toMatchObject({ name: 'nightly', command: ['python3', 'train.py'] })
    expect(await served.client.job({ params: { ref: 'nightly' } })).toEqual(job)
    expect(await served.client.jobs({ query: { limit: 10 } })).toEqual({ jobs: [job], more: false })
    expect((await served.client.explain({ params: { ref: job.id } })).sentence).toBe('it runs')
    expect((await served.client.stop({ params: { ref: 'nightly' } })).after).toBe(1)
  })

  test('one of a name only', async () => {
    await served.client.createJob({ body: { name: 'nightly', command: ['a'] } })
    const error = await failure(served.client.createJob({ body: { name: 'nightly', command: ['a'] } }))
    expect(error).toMatchObject({ code: 'name_taken', exitCode: 2, status: 409 })
  })

  test('an unknown one: code 4, the nearest named', async () => {
    await served.client.createJob({ body: { name: 'nightly', command: ['a'] } })
    const error = await failure(served.client.job({ params: { ref: 'nigtly' } }))
    expect(error).toMatchObject({ code: 'job_not_found', exitCode: 4 })
    expect(error.advice).toContain('nightly')
  })

  test('J-STRICT-1 a refusal comes with its values: code 3', async () => {
    await served.client.createJob({ body: { name: 'nightly', command: ['a'] } })
    const error = await failure(served.client.move({ params: { ref: 'nightly' }, body: { on: 'nowhere' } }))
    expect(error).toMatchObject({ exitCode: 3, facts: { refused: [{ path: 'state.sock' }] } })
  })

  test('practice controls arrive as acts', async () => {
    await served.client.practiceNotice({ body: { machine: 'nightly', length: 1000 } })
    await served.client.practiceReset()
    expect(served.memory.acts).toEqual([{ do: 'notice', machine: 'nightly', length: 1000 }, { do: 'reset' }])
  })
})

describe('the request log', () => {
  test('tells method, path, status and time, and no secret', async () => {
    await raw('/api/jobs?limit=1')
    await expect.poll(() => served.logged.at(-1)).toMatchObject({ method: 'GET', path: '/api/jobs', status: 200 })
    expect(JSON.stringify(served.logged)).not.toContain(token)
  })

  test('what nobody expected is told to the log alone', async () => {
    const other = await serveMemory()
    other.memory.jobs.set('broken', { id: 'broken', name: 'broken' } as never)
    const error = await failure(other.client.job({ params: { ref: 'broken' } }))
    expect(error.code).toBe('internal')
    expect(error.message).not.toContain('stateSince')
    const request = (error.facts as { request: string }).request
    expect(other.logged.some((line) => line['request'] === request && line['err'] !== undefined)).toBe(true)
    await other.close()
  })
})

describe('the openapi description', () => {
  test('is served', async () => {
    const document = (await served.client.openapi()) as { openapi: string; info: { version: string } }
    expect([document.openapi, document.info.version]).toEqual(['3.1.0', '1.2.3'])
  })
})

test('nobody there: code 5, the address named', async () => {
  const error = await failure(createClient({ url: 'http://127.0.0.1:9', token }).jobs())
  expect(error).toMatchObject({ code: 'control_plane_unreachable', exitCode: 5 })
  expect(error.message).toBe('the control plane at http://127.0.0.1:9 cannot be reached: nothing listens there')
})
