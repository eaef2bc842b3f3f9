import { createHash } from 'node:crypto'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { create, list } from 'tar'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createClient, type Client } from '../../contract/client.ts'
import { carriedAt } from './archives.ts'
import { agentToken, jobView, serveMemory, token, type Served } from './testing.ts'

let served: Served
let agent: Client
beforeEach(async () => {
  served = await serveMemory()
  agent = createClient({ url: served.server.url, token: agentToken })
  served.memory.jobs.set('job-1', jobView('job-1', 'nightly', ['a']))
})
afterEach(() => served.close())

const sha = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const kept = (folder: string) => readdir(join(served.folder, folder)).catch(() => [])

describe('a working directory', () => {
  const bytes = Buffer.alloc(3_000_000, 'portal')
  const params = { sha256: sha(bytes) }

  test('is sent once, kept under its hash, and given to the agent that serves it', async () => {
    expect(await served.client.hasWorkdir({ params })).toBe(false)
    expect(
      await served.client.putWorkdir({ params, upload: Readable.from([bytes.subarray(0, 5), bytes.subarray(5)]) }),
    ).toEqual({ sha256: params.sha256, bytes: bytes.length })
    expect(await served.client.hasWorkdir({ params })).toBe(true)
    expect((await buffer(await agent.agentWorkdir({ params }))).equals(bytes)).toBe(true)
    served.memory.accepted = false
    await expect(agent.agentWorkdir({ params })).rejects.toMatchObject({ code: 'not_yours', status: 403 })
  })

  test('is needed before a job that names it', async () => {
    const body = { command: ['a'], workdir: params.sha256 }
    await expect(served.client.createJob({ body })).rejects.toMatchObject({ code: 'workdir_not_found' })
    await served.client.putWorkdir({ params, upload: bytes })
    expect((await served.client.createJob({ body })).command).toEqual(['a'])
  })

  test('of another hash leaves nothing behind', async () => {
    const other = { sha256: '0'.repeat(64) }
    await expect(served.client.putWorkdir({ params: other, upload: bytes })).rejects.toMatchObject({
      code: 'hash_mismatch',
      facts: { expected: other.sha256, got: params.sha256 },
    })
    expect(await kept('workdirs')).toEqual([])
  })

  test('cut off on the way leaves nothing behind', async () => {
    await new Promise<void>((resolve) => {
      const url = `${served.server.url}/api/workdirs/${params.sha256}`
      const headers = { authorization: `Bearer ${token}`, 'content-length': bytes.length }
      const asking = request(url, { method: 'PUT', headers })
      asking.on('error', () => {})
      asking.on('close', () => resolve())
      asking.write(bytes.subarray(0, 1_000_000), () => asking.destroy())
    })
    await expect.poll(() => kept('workdirs')).toEqual([])
    expect(await served.client.hasWorkdir({ params })).toBe(false)
  })

  test('larger than the limit is refused before it is sent', async () => {
    const answer = await new Promise<number>((resolve, reject) => {
      const url = `${served.server.url}/api/workdirs/${params.sha256}`
      const headers = { authorization: `Bearer ${token}`, 'content-length': 2 * 1024 ** 3 }
      const asking = request(url, { method: 'PUT', headers }, (response) => {
        resolve(response.statusCode ?? 0)
        asking.destroy()
      })
      asking.on('error', reject)
      asking.flushHeaders()
    })
    expect(answer).toBe(413)
    expect(await kept('workdirs')).toEqual([])
  })

  test('sent by two at once is kept once, whole', async () => {
    const other = createClient({ url: served.server.url, token })
    await Promise.all([
      served.client.putWorkdir({ params, upload: bytes }),
      other.putWorkdir({ params, upload: Readable.from([bytes]) }),
    ])
    expect(await kept('workdirs')).toEqual([`${params.sha256}.tar`])
  })

  test('is refused at once without the token: the rest is not even read', async () => {
    let read = 0
    const endless = Readable.from(
      (function* () {
        for (; read < 200; read++) yield Buffer.alloc(1024 * 1024)
      })(),
    )
    const stranger = createClient({ url: served.server.url, token: 'x' })
    await expect(stranger.putWorkdir({ params, upload: endless })).rejects.toMatchObject({ code: 'unauthorized' })
    expect(read).toBeLessThan(100)
    expect(endless.destroyed).toBe(true)
    expect(await kept('workdirs')).toEqual([])
  })

  test('a source that fails while it is sent is the error', async () => {
    const failing = Readable.from(
      (async function* () {
        yield bytes.subarray(0, 100)
        throw new Error('the file vanished')
      })(),
    )
    await expect(served.client.putWorkdir({ params, upload: failing })).rejects.toThrow('the file vanished')
    await expect.poll(() => kept('workdirs')).toEqual([])
  })

  test('what a crash left half-written is removed at the next start', async () => {
    const folder = join(served.folder, 'workdirs')
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, '.incoming-x'), 'half')
    const again = await serveMemory({ folders: { workdirs: folder, outputs: join(served.folder, 'outputs') } })
    expect(await kept('workdirs')).toEqual([])
    await again.close()
  })
})

describe('outputs', () => {
  const params = { ref: 'nightly' }

  /** A tar as an agent sends it. */
  const archive = async () => {
    const cwd = join(served.folder, 'job')
    await mkdir(join(cwd, 'out', 'deep'), { recursive: true })
    await writeFile(join(cwd, 'out', 'a.txt'), 'A')
    await writeFile(join(cwd, 'out', 'deep', 'b.txt'), 'B'.repeat(200_000))
    await writeFile(join(cwd, 'output.txt'), 'another')
    return buffer(create({ cwd, portable: true }, ['out', 'output.txt']) as unknown as Readable)
  }
  const namesIn = async (bytes: Buffer) => {
    const names: string[] = []
    const parser = list({ onReadEntry: (entry) => void names.push(`${entry.path} ${entry.size}`) })
    await new Promise<void>((resolve, reject) => {
      parser.on('end', () => resolve())
      parser.on('error', reject)
      parser.end(bytes)
    })
    return names.sort()
  }
  const read = async (path?: string) =>
    namesIn(await buffer(await served.client.readOutputs({ params, query: path ? { path } : {} })))

  test('come from the agent, and are read whole, by directory or by file', async () => {
    const { bytes } = await agent.agentOutputs({ params: { id: 'job-1.1' }, upload: await archive() })
    expect(served.memory.stored).toEqual([{ agentId: 'agent-1', attemptId: 'job-1.1', bytes }])
    expect(await read()).toEqual(['out/ 0', 'out/a.txt 1', 'out/deep/ 0', 'out/deep/b.txt 200000', 'output.txt 7'])
    expect(await read('out')).toEqual(['out/ 0', 'out/a.txt 1', 'out/deep/ 0', 'out/deep/b.txt 200000'])
    expect(await read('./out/deep/')).toEqual(['out/deep/ 0', 'out/deep/b.txt 200000'])
    expect(await read('output.txt')).toEqual(['output.txt 7'])
  })

  test('that are not there are named, with what was declared', async () => {
    await expect(served.client.readOutputs({ params })).rejects.toMatchObject({ code: 'output_not_found', exitCode: 4 })
    await agent.agentOutputs({ params: { id: 'job-1.1' }, upload: await archive() })
    const missing = served.client.readOutputs({ params, query: { path: 'ou' } })
    await expect(missing).rejects.toThrow(/has no output ou$/)
    const awaited = served.client.readOutputs({ params, query: { path: './out/later' } })
    await expect(awaited).rejects.toThrow(/has no output .*out\/later yet$/)
  })

  test('J-SAFE-2 of an old attempt are refused, also one that became old while it sent', async () => {
    const other = agent.agentOutputs({ params: { id: 'job-1.2' }, upload: await archive() })
    await expect(other).rejects.toMatchObject({ code: 'not_yours' })
    const bytes = await archive()
    const late = Readable.from(
      (async function* () {
        yield bytes.subarray(0, 512)
        served.memory.accepted = false
        yield bytes.subarray(512)
      })(),
    )
    await expect(agent.agentOutputs({ params: { id: 'job-1.1' }, upload: late })).rejects.toMatchObject({
      code: 'not_yours',
    })
    expect(served.memory.stored).toEqual([])
    expect(await kept('outputs')).toEqual([])
  })

  test('J-FILE-3 so far are kept beside those of the end, which take their place; nobody is told that they are all', async () => {
    await agent.agentOutputs({ params: { id: 'job-1.1' }, query: { so_far: 'true' }, upload: await archive() })
    expect(served.memory.stored).toEqual([])
    expect(await kept('outputs')).toEqual(['job-1.1.so-far.tar'])
    await agent.agentOutputs({ params: { id: 'job-1.1' }, upload: await archive() })
    expect(await kept('outputs')).toEqual(['job-1.1.tar'])
  })

  test('J-FILE-2 that a checkpoint carries are read as those that an agent sent', async () => {
    const whole = await archive()
    served.memory.carried = (async function* () {
      yield whole.subarray(0, 700)
      yield whole.subarray(700)
    })()
    expect(await read('output.txt')).toEqual(['output.txt 7'])
    // kept: it is not asked for its bytes again
    expect(await read('out/a.txt')).toEqual(['out/a.txt 1'])
    await served.server.outputs.take(carriedAt('job-1.1', 4), Readable.from([whole]))
    expect(await kept('outputs')).toEqual(['job-1.1.at-4.tar'])
  })

  test('replace the ones before', async () => {
    await agent.agentOutputs({ params: { id: 'job-1.1' }, upload: Buffer.alloc(1024) })
    await agent.agentOutputs({ params: { id: 'job-1.1' }, upload: await archive() })
    expect(await read('output.txt')).toEqual(['output.txt 7'])
    expect(await kept('outputs')).toEqual(['job-1.1.tar'])
  })
})
