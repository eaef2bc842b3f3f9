import { request, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { logBytes, createClient } from '../../contract/client.ts'
import { jobView, serveMemory, token, type Served } from './testing.ts'

let served: Served
const params = { ref: 'nightly' }
beforeEach(async () => {
  served = await serveMemory({ streamLimit: 5, times: { heartbeatMs: 20, stallMs: 150 } })
  served.memory.jobs.set('job-1', jobView('job-1', 'nightly', ['a']))
})
afterEach(() => served.close())

/** A stream as raw text, read only when asked to. */
const open = (path: string, headers: Record<string, string> = {}) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const asking = request(
      served.server.url + path,
      { headers: { authorization: `Bearer ${token}`, ...headers } },
      resolve,
    )
    asking.on('error', reject)
    asking.end()
  })

const logOf = async (lastEventId?: string) => {
  const pieces: Buffer[] = []
  let end: unknown = null
  for await (const event of served.client.followLog({ params, ...(lastEventId ? { lastEventId } : {}) }))
    if (event.event === 'log') pieces.push(logBytes(event.data))
    else end = event.data
  return { bytes: Buffer.concat(pieces), end }
}

describe('a log that is followed', () => {
  test('comes whole, as it grows, and ends with the state', async () => {
    served.memory.write('one\n')
    const following = logOf()
    await sleep(30)
    served.memory.write('two\n')
    served.memory.end()
    const { bytes, end } = await following
    expect(bytes.toString()).toBe('one\ntwo\n')
    expect(end).toEqual({ state: 'succeeded', exit: { code: 0, signal: null, at: 5 }, why: null, resumableUntil: null })
  })

  test('carries any bytes: halves of characters, a mark at the beginning, zeros', async () => {
    const all = Buffer.concat([
      Buffer.from('\ufeffå€𝄞\0\r\n'),
      Buffer.from([0xff, 0xc3, 0x28]),
      Buffer.from('€').subarray(0, 2),
    ])
    const following = logOf()
    for (const byte of all) {
      served.memory.write(Buffer.from([byte]))
      await sleep(1)
    }
    served.memory.end()
    expect((await following).bytes.equals(all)).toBe(true)
  })

  test('goes on exactly where it was, by Last-Event-ID or by `from`', async () => {
    served.memory.write('0123456789')
    served.memory.end()
    expect((await logOf('1:4')).bytes.toString()).toBe('456789')
    const ids: (string | null)[] = []
    for await (const event of served.client.followLog({ params, query: { from: '1:8' } })) ids.push(event.id)
    // an event without an id of its own has the last one's: the end of the log is where it was
    expect(ids).toEqual(['1:10', '1:10'])
  })

  test('a position that is none is refused', async () => {
    const following = served.client.followLog({ params, lastEventId: 'x' })
    await expect(following.next()).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(served.client.followLog({ params: { ref: 'nobody' } }).next()).rejects.toMatchObject({ exitCode: 4 })
  })

  test('cut again and again, nothing is lost or doubled', async () => {
    const lines = Array.from({ length: 400 }, (_, n) => `line ${n}\n`)
    const got: Buffer[] = []
    let interruptions = 0
    const following = (async () => {
      const onInterrupted = () => interruptions++
      for await (const event of served.client.followLog({ params, onInterrupted }))
        if (event.event === 'log') got.push(logBytes(event.data))
    })()
    for (const [n, line] of lines.entries()) {
      served.memory.write(line)
      if (n % 100 === 50) {
        // whoever has all that there is stands in a stream, and is cut off from it
        const sent = Buffer.byteLength(lines.slice(0, n + 1).join(''))
        await vi.waitUntil(() => Buffer.concat(got).length === sent, { timeout: 4000, interval: 5 })
        served.cut()
      }
    }
    served.memory.end()
    await following
    expect(Buffer.concat(got).toString()).toBe(lines.join(''))
    expect(interruptions).toBeGreaterThanOrEqual(4)
  })

  test('adds at most 20 ms to a line', async () => {
    const delays: number[] = []
    const following = (async () => {
      for await (const event of served.client.followLog({ params }))
        if (event.event === 'log')
          delays.push(performance.now() - Number(logBytes(event.data).toString().trim().split('\n').at(-1)))
    })()
    await sleep(30)
    for (let n = 0; n < 30; n++) {
      served.memory.write(`${performance.now()}\n`)
      await sleep(3)
    }
    served.memory.end()
    await following
    delays.sort((a, b) => a - b)
    expect(delays[Math.floor(delays.length / 2)]).toBeLessThan(20)
  })

  test('a slow reader: what it does not read is not pulled, and it is cut off in the end', async () => {
    served.memory.write(Buffer.alloc(64 * 1024 * 1024, 'x'))
    const slow = await open('/api/jobs/nightly/log/follow')
    slow.pause()
    await expect.poll(() => served.logged.some(({ status }) => status === 'cut'), { timeout: 5000 }).toBe(true)
    // 64 KiB a piece: what the sockets' own buffers take, and no more
    expect(served.memory.pulled).toBeLessThan(200)
    const closed = new Promise<void>((resolve) => slow.on('close', resolve))
    slow.on('error', () => {})
    slow.resume()
    await closed
    expect(slow.complete).toBe(false)
  })

  test('a reader that leaves frees its place', async () => {
    for (let n = 0; n < 12; n++) {
      const following = await open('/api/jobs/nightly/log/follow')
      following.destroy()
      await sleep(10)
    }
    served.memory.end()
    expect((await logOf()).end).not.toBeNull()
  })

  test('more streams than the limit are refused, by name', async () => {
    const streams = await Promise.all(Array.from({ length: 5 }, () => open('/api/jobs/nightly/log/follow')))
    await expect(served.client.followLog({ params }).next()).rejects.toMatchObject({
      code: 'too_many_streams',
      status: 429,
    })
    for (const stream of streams) stream.destroy()
  })

  test('a sign of life comes while nothing happens', async () => {
    const stream = await open('/api/events')
    let text = ''
    stream.on('data', (bytes: Buffer) => (text += bytes.toString()))
    await expect.poll(() => text.split(':\n\n').length).toBeGreaterThan(3)
    stream.destroy()
  })
})

describe('the log as it is', () => {
  test('comes as bytes', async () => {
    served.memory.write('all of it')
    const chunks: Buffer[] = []
    for await (const chunk of await served.client.readLog({ params, query: { from: '1:4' } }))
      chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks).toString()).toBe('of it')
  })
})

describe('changes', () => {
  test('of a job come from its first on, and go on after Last-Event-ID', async () => {
    for (const kind of ['created', 'starting', 'started']) served.memory.tell(kind)
    served.memory.tell('created', 'job-2')
    const seen: string[] = []
    for await (const { data, id } of served.client.followJobEvents({ params, lastEventId: '1' })) {
      seen.push(`${id} ${data.kind}`)
      if (data.kind === 'started') served.memory.tell('ended')
      if (data.kind === 'ended') break
    }
    expect(seen).toEqual(['2 starting', '3 started', '5 ended'])
  })

  test('of everything begin now, or behind `after`', async () => {
    served.memory.tell('created')
    const following = served.client.followEvents()
    const next = following.next()
    await sleep(50)
    served.memory.tell('started')
    expect((await next).value).toMatchObject({ id: '2', data: { kind: 'started' } })
    await following.return(undefined)
    const first = await served.client.followEvents({ query: { after: 0 } }).next()
    expect(first.value).toMatchObject({ id: '1' })
  })

  test('once=true gives what there is', async () => {
    served.memory.tell('created')
    served.memory.tell('started')
    const { events, last } = await served.client.jobEvents({ params, query: { after: 1 } })
    expect([events.map((e) => e.kind), last]).toEqual([['started'], 2])
    expect(await served.client.events({ query: { after: 2 } })).toEqual({ events: [], last: 2 })
  })

  test('two followers each get all', async () => {
    const first = served.client.followEvents({ query: { after: 0 } })
    const second = createClient({ url: served.server.url, token }).followEvents({ query: { after: 0 } })
    const both = Promise.all([first.next(), second.next()])
    await sleep(20)
    served.memory.tell('created')
    expect((await both).map((step) => (step.value as { id: string }).id)).toEqual(['1', '1'])
    await Promise.all([first.return(undefined), second.return(undefined)])
  })

  test('an aborted follower ends without an error', async () => {
    const controller = new AbortController()
    const next = served.client.followEvents({ signal: controller.signal }).next()
    await sleep(30)
    controller.abort()
    expect((await next).done).toBe(true)
  })
})

describe('closing', () => {
  test('ends streams soon, and those who follow are told when nobody comes back', async () => {
    const following = served.client.followEvents({ retryForMs: 200 })
    const next = following.next()
    const slow = await open('/api/events')
    slow.pause()
    await sleep(30)
    const begun = performance.now()
    await served.server.close(200)
    expect(performance.now() - begun).toBeLessThan(1000)
    await expect(next).rejects.toMatchObject({ code: 'control_plane_unreachable', exitCode: 5 })
    slow.destroy()
  })
})
