import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { agentToken, serveMemory, token, type Served } from './testing.ts'

let served: Served
const sockets: WebSocket[] = []
beforeEach(async () => {
  served = await serveMemory({ times: { pingMs: 50 } })
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate()
  await served.close()
})

const dial = (shown: string | null, path = '/api/agent', headers: Record<string, string> = {}, options = {}) => {
  const socket = new WebSocket(served.server.url.replace('http', 'ws') + path, {
    headers: { ...(shown === null ? {} : { authorization: `Bearer ${shown}` }), ...headers },
    ...options,
  })
  sockets.push(socket)
  return socket
}
const opened = (socket: WebSocket) => new Promise<void>((resolve) => socket.once('open', resolve))
const closed = (socket: WebSocket) =>
  new Promise<string>((resolve) => socket.once('close', (code, reason) => resolve(`${code} ${reason.toString()}`)))
const refused = (socket: WebSocket) =>
  new Promise<number>((resolve) => {
    socket.on('error', () => {})
    socket.on('unexpected-response', (_, response) => resolve(response.statusCode ?? 0))
  })
const hello = { t: 'hello', protocol: 1, agentId: 'agent-1', bootId: 'b', version: '1' }

test('an agent speaks and is spoken to', async () => {
  const socket = dial(agentToken)
  await opened(socket)
  const answer = new Promise<string>((resolve) =>
    socket.once('message', (data) => resolve((data as Buffer).toString())),
  )
  socket.send(JSON.stringify(hello))
  expect(JSON.parse(await answer)).toMatchObject({ t: 'log-ack' })
  expect(served.memory.said).toEqual([hello])
  socket.close()
  await expect.poll(() => served.memory.closedSessions).toBe(1)
})

test('without its token, at another address, from a web page: not let in', async () => {
  expect(await refused(dial(null))).toBe(401)
  expect(await refused(dial(token))).toBe(401)
  expect(await refused(dial(agentToken, '/api/other'))).toBe(404)
  expect(await refused(dial(agentToken, '/api/agent', { origin: 'https://evil.example' }))).toBe(403)
  expect(await refused(dial(agentToken, '/api/agent', { host: 'evil.example' }))).toBe(403)
  expect(served.memory.links).toEqual([])
})

test.for([
  ['what is not JSON', 'x', /^1008 .*JSON/],
  ['what the schema refuses', JSON.stringify({ t: 'nonsense' }), /^1008 \S+/],
  ['a hello in the name of another', JSON.stringify({ ...hello, agentId: 'agent-2' }), /^1008 agentId/],
  ['binary data', Buffer.from('{}'), /^1008 expected text/],
  ['more than a message may have', 'x'.repeat(33 * 1024 * 1024), /^1009/],
] as const)('%s ends the connection, not the server', async ([, message, reason]) => {
  const socket = dial(agentToken)
  await opened(socket)
  const end = closed(socket)
  socket.send(message)
  expect(await end).toMatch(reason)
  expect(served.memory.said).toEqual([])
  await expect.poll(() => served.memory.closedSessions).toBe(1)
  expect((await served.client.health()).ok).toBe(true)
})

test('a newer connection of the same agent takes the place of the older', async () => {
  const older = dial(agentToken)
  await opened(older)
  const end = closed(older)
  await opened(dial(agentToken))
  expect(await end).toContain('a newer connection')
  expect([served.memory.links.length, served.memory.closedSessions]).toEqual([2, 1])
})

test('an agent that answers no ping is given up', async () => {
  const silent = dial(agentToken, '/api/agent', {}, { autoPong: false })
  silent.on('error', () => {})
  await opened(silent)
  await closed(silent)
  expect(served.memory.closedSessions).toBe(1)
})

test('an agent that reads nothing is cut off: what waits for it is bounded', async () => {
  const slow = dial(agentToken)
  await opened(slow)
  slow.pause()
  const [link] = served.memory.links
  const big = 'x'.repeat(1024 * 1024)
  for (let n = 0; n < 40 && served.memory.closedSessions === 0; n++) {
    link?.send({ t: 'log-ack', attempt: big, upTo: n })
    await sleep(1)
  }
  expect(served.memory.closedSessions).toBe(1)
})

test('when the server closes, the agent is told', async () => {
  const socket = dial(agentToken)
  await opened(socket)
  const end = closed(socket)
  await served.server.close(200)
  expect(await end).toBe('1001 the control plane is stopping')
})
