import { EventEmitter } from 'node:events'
import { chmod, lstat, unlink } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import type { Duration } from '../../core/time/index.ts'
import { connection as connect, ConnectionError, type Connection } from './connection.ts'
import { openFlag } from './flag.ts'
import type {
  RestoreOutcome,
  SafePointOutcome,
  SdkClient,
  SdkEvents,
  SdkLimits,
  SdkOptions,
  SdkServer,
} from './model.ts'
import { announced, restoreInto, sameDigest } from './restore.ts'
import { saveAt } from './save.ts'
import { parseSaying } from './schema.ts'

const protocol = 1
/** the kernel's bound on the path of a Unix socket */
const longestPath = 107
/** So long a client that is already there may take to notice that it is gone, when another one comes. */
const handover_ms = 1000

export const defaultLimits: SdkLimits = { hello: 10_000, probe: 300_000, frame: 60_000, restored: 1_800_000 }

type At = { readonly turn: number; readonly asks: 'checkpoint' | null }

/** Opens the flag and listens for the attempt's SDK. Throws where the socket or the flag cannot be made. */
export const listenSdk = async (options: SdkOptions): Promise<SdkServer> => {
  const { socketPath, restore, bitExact } = options
  const limits = { ...defaultLimits, ...options.limits }
  if (Buffer.byteLength(socketPath) > longestPath)
    throw new RangeError(`the path of a socket has at most ${longestPath} bytes; this one is longer: ${socketPath}`)
  const flag = openFlag(options.flagPath)
  const events = new EventEmitter<SdkEvents>()
  const outcome = Promise.withResolvers<RestoreOutcome>()
  let settled: RestoreOutcome | null = null
  let connection: Connection | null = null
  /** resolves when the client that is there has left */
  let left: Promise<void> = Promise.resolve()
  let client: SdkClient | null = null
  let at: At | null = null
  /** resolves `go` where the job waits at a safe point */
  let letGo: (() => void) | null = null
  const mayRun = Promise.withResolvers<void>()
  /** past `job.state()`, as far as this connection knows */
  let started = false
  /** asked until it is there, whoever waits */
  let asked = false
  /** those who wait for a safe point; it is asked for as long as there is one */
  const waiters = new Set<{ resolve(outcome: SafePointOutcome): void }>()
  let exitWhy: string | null = null
  let busy = false
  /** it was said to go on while something was asked of it: it goes when that is over */
  let goWhenFree = false
  let closed = false
  let lastId = 0
  let progress = flag.read()

  const setFlag = (on: boolean): void => {
    if (!closed) flag.set(on)
  }
  const isAsked = (): boolean => asked || waiters.size > 0
  const tellWaiters = (result: SafePointOutcome): void => {
    for (const waiter of waiters) waiter.resolve(result)
    waiters.clear()
  }

  const settle = (result: RestoreOutcome): RestoreOutcome => {
    if (settled === null) {
      settled = result
      outcome.resolve(result)
      events.emit('restored', result)
    }
    return result
  }

  const serve = async (line: Connection): Promise<void> => {
    const hello = parseSaying(await line.next(limits.hello), 'hello')
    if (hello.protocol !== protocol) {
      await line.send({ t: 'exit', why: `this agent speaks protocol ${protocol}, the job’s SDK ${hello.protocol}` })
      return line.end('the job’s SDK speaks another protocol')
    }
    const { sdk: language, version, pid, environment, again } = hello
    client = { language, version, pid, environment, again }
    if (exitWhy !== null) {
      events.emit('connected', client)
      await line.send({ t: 'exit', why: exitWhy })
      await line.over
      return
    }
    const restoring = restore !== null && !again
    await line.send({ t: 'welcome', bitExact, restore: restoring ? announced(restore) : null })
    events.emit('connected', client)
    if (again && !hello.waiting) {
      settle(restore ? { is: 'restored', ms: 0 } : { is: 'nothing' })
    } else {
      const result = restoring ? await restoreInto(line, restore, limits) : arrived(again, hello.digest ?? null)
      settle(result)
      if (result.is === 'refused' || result.is === 'damaged' || result.is === 'failed') {
        await line.send({ t: 'exit', why: result.why })
        await line.over
        return
      }
      await Promise.race([mayRun.promise, line.over])
      if (exitWhy === null) await line.send({ t: 'run' })
    }
    started = true
    if (isAsked()) raiseFlag()
    for (;;) {
      if (exitWhy !== null) await line.send({ t: 'exit', why: exitWhy })
      const { turn, asks = null } = parseSaying(await line.next(null), 'safe-point')
      await safePoint(line, { turn, asks })
    }
  }

  /** A job that waits with its values in place, and nothing to send to it. */
  const arrived = (again: boolean, digest: string | null): RestoreOutcome => {
    if (!restore) return { is: 'nothing' }
    return again ? (sameDigest(restore, digest) ?? { is: 'restored', ms: 0 }) : { is: 'nothing' }
  }

  const safePoint = async (line: Connection, place: At): Promise<void> => {
    if (exitWhy !== null) return
    if (!isAsked() && place.asks === null) {
      setFlag(false)
      return await line.send({ t: 'go' })
    }
    const gone = new Promise<void>((resolve) => {
      letGo = resolve
    })
    at = place
    tellWaiters({ is: 'there', ...place })
    events.emit('safePoint', place)
    await Promise.race([gone, line.over])
    if (line.ended !== null) throw new ConnectionError(line.ended)
    if (exitWhy === null) await line.send({ t: 'go' })
  }

  const accept = async (socket: Socket): Promise<void> => {
    const line = connect(socket)
    if (connection) {
      await Promise.race([left, new Promise((resolve) => setTimeout(resolve, handover_ms))])
      if (connection || closed) return line.end('another client is there')
    }
    connection = line
    const leaving = Promise.withResolvers<void>()
    left = leaving.promise
    try {
      await serve(line)
    } catch (error) {
      line.end(error instanceof Error ? error.message : String(error))
    }
    connection = null
    client = null
    started = false
    at = null
    letGo = null
    goWhenFree = false
    leaving.resolve()
    tellWaiters({ is: 'disconnected' })
    lowerFlag()
    events.emit('disconnected', line.ended ?? 'the conversation ended')
  }

  const raiseFlag = (): void => {
    setFlag(true)
    // Node's SDK hears it by its worker at once; others look at the flag, and read nothing before their safe point
    if (started && !at && client?.language === 'node') connection?.send({ t: 'ask' }).catch(() => {})
  }
  const lowerFlag = (): void => {
    if (!at && exitWhy === null && !isAsked()) setFlag(false)
  }

  /** The flag is cleared first, and at once: who asks again after this means the next safe point. */
  const leaveSafePoint = (): void => {
    if (busy) {
      goWhenFree = letGo !== null
      return
    }
    const leave = letGo
    if (!leave) return
    at = null
    letGo = null
    asked = false
    setFlag(exitWhy !== null)
    leave()
  }

  /** One question at a time, at a safe point; what goes wrong with the conversation is an outcome. */
  const asking = async <T>(
    act: (line: Connection, id: number) => Promise<T>,
  ): Promise<T | { is: 'failed'; why: string }> => {
    const line = connection
    if (!line || !at) return { is: 'failed', why: 'the job is not at a safe point' }
    if (busy) return { is: 'failed', why: 'something else is being asked of the job' }
    busy = true
    try {
      return await act(line, ++lastId)
    } catch (error) {
      const why = line.ended ?? (error instanceof Error ? error.message : String(error))
      line.end(why)
      return { is: 'failed', why }
    } finally {
      busy = false
      if (goWhenFree) leaveSafePoint()
      goWhenFree = false
    }
  }

  /** a job that was waiting may dial before whoever opens this could listen to its events */
  const opened = Promise.withResolvers<void>()
  const server = createServer((socket) => void opened.promise.then(() => accept(socket)))
  await removeOldSocket(socketPath)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(socketPath, resolve)
  })
  await chmod(socketPath, 0o600)
  setImmediate(opened.resolve)

  return {
    get client() {
      return client
    },
    get at() {
      return at
    },
    on: (event, listener) => void events.on(event, listener as never),
    off: (event, listener) => void events.off(event, listener as never),
    restored: () => outcome.promise,
    run: () => mayRun.resolve(),
    exit: (why) => {
      exitWhy = why
      setFlag(true)
      mayRun.resolve()
      leaveSafePoint()
    },
    ask: () => {
      asked = true
      raiseFlag()
    },
    unask: () => {
      if (at) return
      asked = false
      tellWaiters({ is: 'late' })
      lowerFlag()
    },
    safePoint: async (wait: Duration) => {
      if (closed) return { is: 'closed' }
      if (at) return { is: 'there', ...at }
      const { promise, resolve } = Promise.withResolvers<SafePointOutcome>()
      const waiter = { resolve }
      waiters.add(waiter)
      raiseFlag()
      const timer = setTimeout(() => {
        waiters.delete(waiter)
        resolve({ is: 'late' })
        lowerFlag()
      }, wait)
      const result = await promise
      clearTimeout(timer)
      return result
    },
    probe: () =>
      asking(async (line, id) => {
        await line.send({ t: 'probe', id })
        const answer = parseSaying(await line.next(limits.probe), 'probed', 'refused')
        if (answer.id !== id) throw new Error(`the job answered ${answer.id} where ${id} was asked`)
        if (answer.t === 'refused') return { is: 'refused', values: answer.values }
        return { is: 'probed', bytes: answer.bytes, objects: answer.objects, ms: answer.ms }
      }),
    save: (order) => asking((line, id) => saveAt(line, id, order, limits)),
    go: leaveSafePoint,
    progress: () => (closed ? progress : flag.read()),
    close: async () => {
      if (closed) return
      closed = true
      progress = flag.read()
      flag.close()
      tellWaiters({ is: 'closed' })
      connection?.end('the agent ended the conversation')
      await new Promise<void>((resolve) => server.close(() => resolve()))
      settle({ is: 'failed', why: 'the conversation was ended before the restore was' })
    },
  }
}

/** One that an agent left behind when it was killed; anything else in its place is not ours to remove. */
const removeOldSocket = async (path: string): Promise<void> => {
  const there = await lstat(path).catch(() => null)
  if (there?.isSocket()) await unlink(path)
}
