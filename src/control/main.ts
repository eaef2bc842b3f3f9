/** The control plane: the only place where its parts are joined. Started by `portal serve`, or by any command that finds none. */
import { existsSync, writeSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pino from 'pino'
import { directoryStore, jobKey } from '../checkpoints/index.ts'
import { PortalError, portalError } from '../contract/errors.ts'
import { homeDirectory, homeFiles } from '../contract/home.ts'
import { firstConnections, openProviders } from '../providers/index.ts'
import { LockedError, openStore, takeLock } from '../store/index.ts'
import { Agents } from './agents.ts'
import { Happenings } from './api/follow.ts'
import { openApi } from './api/index.ts'
import { openChains } from './chains.ts'
import type { Context } from './engine/context.ts'
import { Engine } from './engine/engine.ts'
import { openGateway } from './gateway.ts'
import { openHome } from './home.ts'
import { createServer, type HttpServer } from './http/server.ts'
import { connect, keepSeen, readInstallation } from './installation.ts'
import { agentToken, masterKey } from './keys.ts'
import { Logs } from './logs.ts'
import { listenAgain } from './port.ts'
import { systemClock, systemRandom, userName } from './system.ts'
import { version } from './version.ts'

const { values: flags } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    host: { type: 'string' },
    /** where state is kept: a file, or `postgresql://…` */
    store: { type: 'string' },
  },
})

/** A program of Portal's beside this one: bundled, or from source. */
const program = (bundled: string, source: string): string => {
  const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
  return existsSync(here(`./${bundled}`)) ? here(`./${bundled}`) : here(source)
}

/** A line that a full disk does not take is lost: jobs matter more than what is told of them. */
function logLine(line: string): void {
  try {
    writeSync(1, line)
  } catch {
    // nowhere to say so
  }
}

async function serve(): Promise<void> {
  const home = await openHome(homeDirectory())
  const lock = takeLock(homeFiles.lock(home.path), Date.now())
  const log = pino({ level: process.env.PORTAL_LOG_LEVEL ?? 'info', base: { pid: process.pid } }, { write: logLine })
  const key = masterKey(home.path)
  const store = await openStore(flags.store ?? process.env.PORTAL_STORE ?? homeFiles.database(home.path))
  const installation = await readInstallation(store, systemClock, systemRandom)
  await connect(store, firstConnections)

  const directory = homeFiles.checkpoints(home.path)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const entries = (await store.connections()).map(({ id, provider, settings }) => ({
    connection: id,
    provider,
    settings,
  }))
  const programs = {
    agent: program('agent.js', '../agent/main.ts'),
    practice: program('practice.js', '../providers/practice/cloud/main.ts'),
  }
  const providers = await openProviders({ home: home.path, entries, programs })

  const logs = new Logs(homeFiles.logs(home.path))
  const agents = new Agents(systemClock.now)
  const happenings = new Happenings()
  let server: HttpServer | null = null
  const context: Context = {
    store,
    clock: systemClock,
    random: systemRandom,
    providers,
    agents,
    logs,
    log,
    installation: installation.name,
    chains: openChains(await directoryStore(directory), key),
    keyOf: keysFrom(key),
    tokenOf: (agentId) => agentToken(key, agentId),
    url: () => server?.url ?? '',
    checkpoints: { directory },
    outputsIn: (attemptId) => server?.outputs.kept(attemptId) ?? false,
    happened: () => happenings.happened(),
  }
  const engine = new Engine(context)

  let stopping = false
  const stop = async (because: string): Promise<void> => {
    if (stopping) return
    stopping = true
    log.info({ because }, 'the control plane stops; jobs run on until their leases run out')
    await server?.close()
    agents.closeAll('the control plane stops')
    await engine.stop()
    seen.stop()
    for (const provider of providers.values()) await provider.close()
    await home.removeServing(process.pid)
    await store.close()
    logs.close()
    lock.release()
  }

  const startedAt = Date.now()
  const served: Omit<Parameters<typeof createServer>[0], 'port'> = {
    api: openApi({
      context,
      engine,
      happenings,
      home: home.path,
      version: version(),
      startedAt,
      pid: process.pid,
      shutdown: () => void setTimeout(() => void stop('asked to').then(() => process.exit(0)), 50),
    }),
    agents: openGateway({ key, store, agents, stored: (jobId) => engine.wake(jobId), closed: () => stopping }),
    token: home.token,
    person: userName(),
    version: version(),
    folders: { workdirs: homeFiles.workdirs(home.path), outputs: homeFiles.outputs(home.path) },
    log,
    ...(flags.host !== undefined && { hosts: [flags.host] }),
  }
  const again = await listenAgain(home.path, Number(flags.port), (port) => createServer({ ...served, port }))
  server = again.server
  if (again.movedFrom !== null)
    log.warn(
      { url: server.url, before: again.movedFrom },
      'agents that run look for it on another port, and cannot find it',
    )
  const seen = keepSeen(store, systemClock)
  await engine.start()
  await home.writeServing({ url: server.url, pid: process.pid, version: version(), startedAt })
  log.info({ url: server.url, home: home.path }, 'the control plane serves')

  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => void stop(signal).then(() => process.exit(0)))
}

/** The jobs' keys. Each is asked for at every look at its job, and takes 0.2 ms to derive. */
function keysFrom(key: Uint8Array): (jobId: string) => string {
  const derived = new Map<string, string>()
  return (jobId) => {
    const known = derived.get(jobId)
    if (known !== undefined) return known
    if (derived.size >= 1000) derived.clear()
    const fresh = jobKey(key, jobId).toString('base64')
    derived.set(jobId, fresh)
    return fresh
  }
}

/** A control plane that cannot serve says why in one sentence, and what to do in another. */
serve().catch((error: unknown) => {
  const told =
    error instanceof LockedError && error.holder
      ? portalError('already_serving', { pid: error.holder.pid, home: homeDirectory() })
      : error
  if (told instanceof PortalError) console.error(`portal: ${told.message}\n${told.advice}`)
  else {
    // where it happened comes first: a command that started it shows the end
    if (process.env.PORTAL_DEBUG) console.error(told)
    console.error(`portal: the control plane could not start: ${told instanceof Error ? told.message : String(told)}`)
  }
  process.exit(told instanceof PortalError ? told.exitCode : 1)
})
