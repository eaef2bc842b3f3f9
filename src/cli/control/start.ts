import { spawn } from 'node:child_process'
import { closeSync, existsSync, fchmodSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient, type Client } from '../../contract/client.ts'
import { PortalError } from '../../contract/errors.ts'
import { homeFiles, makeHome, readToken, type Serving } from '../../contract/home.ts'
import type { Cli } from '../context.ts'
import { failed } from '../failure.ts'
import { progress } from '../progress.ts'
import { isAlive, servingNow } from './reach.ts'

/** How long a control plane may take until it answers, and until it has ended. */
const startLimit_ms = 10_000
const stopLimit_ms = 30_000
/** What one says that found the data directory taken: two commands may have started one each, and the other's serves. */
const lostToAnother = 'runs on the data directory'

/** The program of the control plane: built beside this one, else the sources. */
export const controlProgram = (): string => {
  const built = fileURLToPath(new URL('./control.js', import.meta.url))
  if (existsSync(built)) return built
  for (const path of ['../../control/main.ts', '../../dist/control.js']) {
    const file = fileURLToPath(new URL(path, import.meta.url))
    if (existsSync(file)) return file
  }
  throw failed(
    'not_built',
    'the control plane of this Portal is missing',
    'Run `npm ci` in its folder, or `npm run build`.',
  )
}

/**
 * Starts a control plane by itself, its output in the data directory, and waits until one answers. Started twice at
 * once, one gets the data directory's lock; both commands then use that one.
 *
 * @throws PortalError `start_failed` with the end of its log
 */
export const startControlPlane = async (cli: Cli, home: string, args: readonly string[] = []): Promise<Client> => {
  makeHome(home)
  const file = homeFiles.log(home)
  const log = openSync(file, 'a', 0o600)
  fchmodSync(log, 0o600)
  const from = existsSync(file) ? readFileSync(file).length : 0
  const child = spawn(process.execPath, [controlProgram(), ...args], {
    cwd: home,
    detached: true,
    stdio: ['ignore', log, log],
    env: { ...cli.env, PORTAL_HOME: home },
  })
  closeSync(log)
  let ended = false
  child.once('exit', () => (ended = true))
  child.once('error', () => (ended = true))
  child.unref()

  const line = progress(cli, 'starting the control plane')
  const started = performance.now()
  try {
    for (let pause = 10; ; pause = Math.min(pause * 1.3, 100)) {
      const client = await answering(home)
      if (client) return client
      if (performance.now() - started > startLimit_ms) break
      if (ended && !saidSince(file, from).includes(lostToAnother)) break
      await sleep(pause)
    }
  } finally {
    line.done()
    child.removeAllListeners()
  }
  const said = saidSince(file, from).trim().split('\n').slice(-5).join('\n')
  throw failed(
    'start_failed',
    !ended ? `the control plane did not answer within ${startLimit_ms / 1000} s` : 'the control plane did not start',
    `${said === '' ? '' : `${said}\n`}Look with \`portal doctor\`; its log is ${file}.`,
    { log: file },
  )
}

/** What a log got from a position on; what others wrote meanwhile is in it too. */
const saidSince = (file: string, from: number): string => readFileSync(file).subarray(from).toString('utf8')

/** A client of the control plane that answers for this data directory now, else null. */
const answering = async (home: string): Promise<Client | null> => {
  const serving = servingNow(home)
  const token = readToken(home)
  if (!serving || !token) return null
  const client = createClient({ url: serving.url, token })
  try {
    const { pid } = await client.health({ timeoutMs: 2000 })
    return pid === serving.pid ? client : null
  } catch (error) {
    if (error instanceof PortalError) return null
    throw error
  }
}

/** Ends an older control plane in peace and starts this one's. */
export const replace = async (cli: Cli, home: string, old: Serving): Promise<Client> => {
  cli.note(cli.errorColors.dim(`portal: replacing the control plane (${old.version}) by this version; jobs go on`))
  await stopControlPlane(home, old)
  return startControlPlane(cli, home)
}

/**
 * Asks a control plane to stop and waits until its process has gone.
 *
 * @returns what it says becomes of the jobs that run; null: it had gone already
 * @throws PortalError `stop_failed` when it is still there after 30 s
 */
export const stopControlPlane = async (home: string, serving: Serving): Promise<string | null> => {
  const client = createClient({ url: serving.url, token: readToken(home) })
  let sentence: string | null = null
  try {
    sentence = (await client.shutdown()).sentence
  } catch (error) {
    if (!(error instanceof PortalError) || error.exitCode !== 5) throw error
  }
  const until = performance.now() + stopLimit_ms
  while (isAlive(serving.pid)) {
    if (performance.now() > until)
      throw failed(
        'stop_failed',
        `the control plane (process ${serving.pid}) is still there after ${stopLimit_ms / 1000} s`,
        `Look into ${homeFiles.log(home)}; end it with \`kill ${serving.pid}\`: it comes back to where it was.`,
      )
    await sleep(20)
  }
  return sentence
}
