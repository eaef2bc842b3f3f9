import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { money } from '../../src/core/money/index.ts'
import { identityOf } from '../../src/providers/processes.ts'
import { openThisMachine, type ThisMachine } from '../../src/providers/this-machine/index.ts'
import { agentEntry, endStrays, startRequest } from './provider/harness.ts'

let home: string
let folder: string
let opened: ThisMachine[]

const open = async (): Promise<ThisMachine> => {
  const provider = await openThisMachine({ home, agentEntry })
  opened.push(provider)
  return provider
}
const started = async (): Promise<readonly { agentId: string; pid: number }[]> => {
  const text = await readFile(join(folder, 'started'), 'utf8').catch(() => '')
  return text
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}
const holder = async (): Promise<number> => JSON.parse(await readFile(join(folder, 'agent.pid.json'), 'utf8')).pid
const mode = async (path: string): Promise<number> => (await stat(path)).mode & 0o777

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'portal-this-machine-'))
  folder = join(home, 'agents', 'this-machine')
  opened = []
})
afterEach(async () => {
  for (const provider of opened) {
    await provider.stopAgent()
    await provider.close()
  }
  await endStrays(home)
  await rm(home, { recursive: true, force: true })
})

test('one offer, by exactly this name, that costs nothing and has what the machine has', async () => {
  const provider = await open()
  const [offer, ...others] = await provider.offers(startRequest.needs)
  expect(others).toEqual([])
  expect(offer).toMatchObject({ id: 'this-machine', market: 'owned', price: money(0), notice: null, lifetime: null })
  expect(offer?.cpus).toBeGreaterThanOrEqual(1)
  expect(offer?.memoryBytes).toBeGreaterThan(2 ** 27)
})

test('its bootstrap and its folder are nobody else to read', async () => {
  const provider = await open()
  await provider.start(startRequest)
  expect(await mode(folder)).toBe(0o700)
  expect(await mode(join(folder, 'bootstrap.json'))).toBe(0o600)
  expect(await mode(join(folder, 'agent.log'))).toBe(0o600)
  expect(JSON.parse(await readFile(join(folder, 'bootstrap.json'), 'utf8'))).toEqual(startRequest.bootstrap)
})

test('many starts at once, from two control planes: one agent', async () => {
  const [first, second] = [await open(), await open()]
  await Promise.all([first, second, first, second, first, second].map((provider) => provider.start(startRequest)))
  await vi.waitFor(async () => expect(await started()).toHaveLength(1), { timeout: 5000 })
  await first.start(startRequest)
  expect(await started()).toHaveLength(1)
  expect((await started())[0]?.pid).toBe(await holder())
})

test('an agent in a session of its own, which goes on when its control plane closes', async () => {
  const first = await open()
  await first.start(startRequest)
  await first.close()
  const pid = await holder()
  const session = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(' ')[5]
  expect(Number(session)).toBe(pid)
  const second = await open()
  expect(await second.observe('this-machine')).toEqual({ is: 'alive', machineId: 'this-machine' })
})

test('an agent that died is unknown, not gone, and is started again', async () => {
  const provider = await open()
  await provider.start(startRequest)
  const pid = await holder()
  process.kill(pid, 'SIGKILL')
  await vi.waitFor(() => expect(identityOf(pid)).toBeNull())
  expect(await provider.observe('this-machine')).toMatchObject({ is: 'unknown' })
  await vi.waitFor(
    async () => expect(await provider.observe('this-machine')).toEqual({ is: 'alive', machineId: 'this-machine' }),
    { timeout: 10_000, interval: 50 },
  )
  expect(await holder()).not.toBe(pid)
})

test('an agent that died while no control plane looked is started again by the next one, but not one that was stopped', async () => {
  const first = await open()
  await first.start(startRequest)
  await first.close()
  const pid = await holder()
  process.kill(pid, 'SIGKILL')
  await vi.waitFor(() => expect(identityOf(pid)).toBeNull())
  const second = await open()
  await vi.waitFor(async () => expect(await second.observe('this-machine')).toMatchObject({ is: 'alive' }), {
    timeout: 5000,
  })
  expect(await holder()).not.toBe(pid)
  await second.stopAgent()
  const third = await open()
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(await third.observe('this-machine')).toMatchObject({ is: 'unknown' })
})

test('what an agent left running does not keep the next agent out', async () => {
  const provider = await open()
  await provider.start(startRequest)
  await vi.waitFor(() => readFile(join(folder, 'stray.pid')), { timeout: 5000 })
  await provider.stopAgent()
  await provider.start(startRequest)
  expect(await provider.observe('this-machine')).toMatchObject({ is: 'alive' })
})

test('an agent that looks for its control plane elsewhere is started anew; what it left running goes on', async () => {
  const provider = await open()
  await provider.start(startRequest)
  const pid = await holder()
  const stray = Number(await vi.waitFor(() => readFile(join(folder, 'stray.pid'), 'utf8'), { timeout: 5000 }))
  await provider.start({ ...startRequest, bootstrap: { ...startRequest.bootstrap, checkin: 1 } })
  expect(await holder()).toBe(pid)
  const bootstrap = { ...startRequest.bootstrap, url: 'http://127.0.0.1:2' }
  await provider.start({ ...startRequest, bootstrap })
  expect(JSON.parse(await readFile(join(folder, 'bootstrap.json'), 'utf8'))).toEqual(bootstrap)
  expect(await holder()).not.toBe(pid)
  expect(identityOf(pid)).toBeNull()
  expect(identityOf(stray)).not.toBeNull()
})

test('an agent that cannot run: said, with the end of its log', async () => {
  const provider = await open()
  await writeFile(join(folder, 'refuse'), '')
  await provider.start(startRequest).catch(() => {})
  await vi.waitFor(async () =>
    expect(await provider.observe('this-machine')).toMatchObject({
      is: 'unknown',
      error: expect.stringMatching(/ended with 9.*this agent refuses to start/s),
    }),
  )
})

test('an installation without an agent: said', async () => {
  const provider = await openThisMachine({ home, agentEntry: join(home, 'nowhere.js') })
  opened.push(provider)
  await expect(provider.start(startRequest)).rejects.toMatchObject({
    name: 'ProviderError',
    kind: 'unreachable',
    message: expect.stringContaining('nowhere.js'),
  })
})

test('J-NEVER-2 its end is nothing: the agent and what it started go on', async () => {
  const provider = await open()
  const { machineId } = await provider.start(startRequest)
  const pid = await holder()
  await provider.end(machineId)
  await provider.end('this-machine')
  expect(identityOf(pid)).not.toBeNull()
  expect(await provider.observe('this-machine')).toMatchObject({ is: 'alive' })
})
