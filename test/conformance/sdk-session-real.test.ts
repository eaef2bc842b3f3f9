import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { chainOn } from '../../src/checkpoints/chain/testing.ts'
import {
  directoryStore,
  listenSdk,
  readManifest,
  seal,
  verify,
  type SaveOrder,
  type SdkOptions,
  type SdkServer,
} from '../../src/checkpoints/index.ts'

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const python = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0
if (!python) console.warn('skipped: no python3 of 3.9 or newer here, so the agent is not tried with the Python SDK')

const languages = [
  { language: 'python', command: ['python3', at('test/support/checkpoints/job.py')], here: python },
  { language: 'node', command: [process.execPath, at('test/support/checkpoints/job.mjs')], here: true },
]

let folder: string
const ending: (() => Promise<void>)[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portal-real-'))
})
afterEach(async () => {
  for (const end of ending.splice(0).toReversed()) await end()
  await rm(folder, { recursive: true })
})

/** One attempt: the agent's server and the job's process. */
const attempt = async (
  command: readonly string[],
  { env = {}, restore = null }: { readonly env?: NodeJS.ProcessEnv; readonly restore?: SdkOptions['restore'] } = {},
) => {
  const place = await mkdtemp(join(folder, 'a'))
  const options = { socketPath: join(place, 's'), flagPath: join(place, 'f'), bitExact: false, restore }
  const server = await listenSdk(options)
  ending.push(() => server.close())
  const child: ChildProcess = spawn(command[0] as string, command.slice(1), {
    env: {
      PATH: process.env.PATH,
      PYTHONPATH: at('sdk/python'),
      PYTHONHASHSEED: '0',
      PYTHONDONTWRITEBYTECODE: '1',
      PORTAL_SOCKET: options.socketPath,
      PORTAL_FLAG: options.flagPath,
      PORTAL_JOB: 'job',
      PORTAL_ATTEMPT: '1',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let errors = ''
  child.stdout?.on('data', (bytes) => (output += bytes))
  child.stderr?.on('data', (bytes) => (errors += bytes))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  ending.push(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    server,
    options,
    child,
    ended,
    output: () => output,
    errors: () => errors,
    until: async (text: string) => {
      while (!output.includes(text)) {
        if (child.exitCode !== null) throw new Error(`the job ended before it said ${text}: ${output}${errors}`)
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    },
  }
}
const lastLine = (output: string) => output.trim().split('\n').at(-1)
const safePoint = async (server: SdkServer, turn = 1) => {
  while (server.progress().turns < turn) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(await server.safePoint(20_000)).toMatchObject({ is: 'there' })
}
const uninterrupted = async (command: readonly string[]) => {
  const whole = await attempt(command)
  whole.server.run()
  expect({ code: await whole.ended, errors: whole.errors() }).toEqual({ code: 0, errors: '' })
  return lastLine(whole.output())
}
const order = async (more: Partial<SaveOrder> = {}): Promise<SaveOrder> => ({
  ...chainOn(await directoryStore(join(folder, 'store'))),
  token: 1,
  slot: 1,
  parent: null,
  savedAt: Date.now(),
  notes: null,
  ...more,
})

describe.each(languages)('$language', ({ language, command, here }) => {
  test.skipIf(!here)(
    'K-WHOLE-3 saved, killed and restored in a new process it ends as if nothing had happened',
    async () => {
      const expected = await uninterrupted(command)
      const first = await attempt(command, { env: { PAUSE: '0.02' } })
      first.server.run()
      await safePoint(first.server, 3)
      expect(first.server.client?.language).toBe(language)
      expect(await first.server.probe()).toMatchObject({ is: 'probed' })
      const one = await first.server.save(await order())
      expect(one).toMatchObject({ is: 'committed', slot: 1 })
      first.server.go()
      const turns = first.server.progress().turns
      await safePoint(first.server, turns + 3)
      const two = await first.server.save(await order({ slot: 2, parent: 1 }))
      expect(two).toMatchObject({ is: 'committed', slot: 2 })
      first.child.kill('SIGKILL')
      await first.ended

      for (const slot of [1, 2]) {
        const chain = await order()
        const manifest = await readManifest(chain, slot)
        await verify(chain, manifest)
        expect(manifest.values.map(({ path }) => path)).toContain('state.model')
        const second = await attempt(command, { restore: { ...chain, manifest } })
        expect(await second.server.restored()).toMatchObject({ is: 'restored' })
        expect(second.output()).toBe('')
        second.server.run()
        expect({ code: await second.ended, errors: second.errors() }).toEqual({ code: 0, errors: '' })
        expect(second.output()).not.toContain('begin 0')
        expect(lastLine(second.output())).toBe(expected)
        expect(second.server.progress()).toMatchObject({ done: 30, total: 30 })
      }
    },
  )

  test.skipIf(!here)(
    'K-STRICT-1 an open socket is named by its path, nothing is saved, and the job runs on',
    async () => {
      const job = await attempt(command, { env: { PAUSE: '0.02', OPEN_SOCKET: '1' } })
      job.server.run()
      await safePoint(job.server, 3)
      expect(await job.server.probe()).toMatchObject({ is: 'refused', values: [{ path: 'state.sock' }] })
      const saved = await job.server.save(await order())
      expect(saved).toMatchObject({ is: 'refused', values: [{ path: 'state.sock' }] })
      job.server.go()
      expect(await job.ended).toBe(0)
    },
  )

  test.skipIf(!here)('a save that fails on the agent’s side leaves the job running', async () => {
    const job = await attempt(command, { env: { PAUSE: '0.02' } })
    job.server.run()
    await safePoint(job.server, 2)
    const plan = await order()
    expect(await job.server.save({ ...plan, more: () => Promise.reject(new Error('no room left')) })).toEqual({
      is: 'failed',
      why: 'no room left',
    })
    await seal({ ...plan, after: 0, by: 'move' })
    expect(await job.server.save(plan)).toEqual({ is: 'fenced', by: { is: 'seal' } })
    job.server.go()
    expect(await job.ended).toBe(0)
  })

  test.skipIf(!here)('K-WHOLE-2 a damaged checkpoint is never opened: the job ends with 75', async () => {
    const first = await attempt(command, { env: { PAUSE: '0.02' } })
    first.server.run()
    await safePoint(first.server, 2)
    const chain = await order()
    await first.server.save(chain)
    const manifest = await readManifest(chain, 1)
    const pack = manifest.packs[0]?.key as string
    const bytes = Buffer.from((await chain.store.read(pack)) as Uint8Array)
    bytes[bytes.length >> 1]! ^= 4
    await chain.store.remove(pack)
    await chain.store.put(pack, bytes)
    const second = await attempt(command, { restore: { ...chain, manifest } })
    expect(await second.server.restored()).toMatchObject({ is: 'damaged' })
    second.server.run()
    expect(await second.ended).toBe(75)
    expect(second.output()).toBe('')
    expect(second.errors()).toContain('damaged')
  })

  test.skipIf(!here)('an agent that comes back finds the job running, and saves it', async () => {
    const expected = await uninterrupted(command)
    const job = await attempt(command, { env: { PAUSE: '0.05' } })
    job.server.run()
    await job.until('begin 0')
    await job.server.close()
    const next = await listenSdk(job.options)
    ending.push(() => next.close())
    await safePoint(next)
    expect(next.client).toMatchObject({ again: true })
    expect(await next.save(await order())).toMatchObject({ is: 'committed' })
    next.go()
    expect(await job.ended).toBe(0)
    expect(lastLine(job.output())).toBe(expected)
  })

  test.skipIf(!here)('an agent that comes back while the job waits lets it run, its values in place', async () => {
    const first = await attempt(command, { env: { PAUSE: '0.02' } })
    first.server.run()
    await safePoint(first.server, 4)
    const chain = await order()
    await first.server.save(chain)
    first.child.kill('SIGKILL')
    const restore = { ...chain, manifest: await readManifest(chain, 1) }
    const job = await attempt(command, { restore })
    expect(await job.server.restored()).toMatchObject({ is: 'restored' })
    await job.server.close()
    const next = await listenSdk(job.options)
    ending.push(() => next.close())
    next.run()
    expect(await next.restored()).toMatchObject({ is: 'restored' })
    expect(await job.ended).toBe(0)
    expect(job.output()).not.toContain('begin 0')
  })

  test.skipIf(!here)('told to exit, the job ends with 75', async () => {
    const job = await attempt(command, { env: { PAUSE: '0.02' } })
    job.server.run()
    await safePoint(job.server, 2)
    await job.server.save(await order())
    job.server.exit('it was suspended')
    expect(await job.ended).toBe(75)
  })
})
