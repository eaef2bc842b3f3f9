import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listenAgain } from './port.ts'

let home: string
let open: Server[]
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'portal-port-'))
  open = []
})
afterEach(async () => {
  for (const server of open) server.close()
  await rm(home, { recursive: true, force: true })
})

const listen = (port: number) =>
  new Promise<{ url: string; port: number; close: () => Promise<void> }>((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      open.push(server)
      const { port } = server.address() as AddressInfo
      const close = () => new Promise<void>((closed) => void server.close(() => closed()))
      resolve({ url: `http://127.0.0.1:${port}`, port, close })
    })
  })

test('a control plane comes back where agents look for it', async () => {
  const first = await listenAgain(home, 0, listen)
  await first.server.close()
  const second = await listenAgain(home, 0, listen)
  expect(second.server.port).toBe(first.server.port)
  expect(second.movedFrom).toBeNull()
})

test('where somebody else has taken the port: elsewhere, and that is said', async () => {
  const first = await listenAgain(home, 0, listen)
  const second = await listenAgain(home, 0, listen)
  expect(second.server.port).not.toBe(first.server.port)
  expect(second.movedFrom).toBe(first.server.port)
})

test('a port that a person asks for is that port or a refusal', async () => {
  const first = await listenAgain(home, 0, listen)
  await expect(listenAgain(home, first.server.port, listen)).rejects.toThrow('EADDRINUSE')
})
