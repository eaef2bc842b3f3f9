/** `node agent.js BOOTSTRAP_FILE`: the machine's side. Its folder is that file's; all that it knows lies there. */
import { mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pino } from 'pino'
import { type CheckpointStore, directoryStore } from '../checkpoints/index.ts'
import { checkBootstrap } from '../contract/agent-schema.ts'
import { Agent } from './agent.ts'
import { systemClocks } from './clock.ts'
import { findSdk } from './environment.ts'
import { sweepCgroups } from './keeper/cgroup.ts'
import { probeConfinement } from './keeper/confine.ts'
import { installKeeper } from './keeper/index.ts'
import { metadataFile } from './notice.ts'

const [, , file] = process.argv
if (file === undefined) {
  console.error('usage: agent BOOTSTRAP_FILE')
  process.exit(2)
}
const path = resolve(file)
const data = dirname(path)
mkdirSync(data, { recursive: true, mode: 0o700 })
const logFile = openSync(join(data, 'agent.jsonl'), 'a', 0o600)
/** A line that a full disk does not take is lost: jobs matter more than what is told of them. */
function logLine(line: string): void {
  try {
    writeSync(logFile, line)
  } catch {
    // nowhere to say so
  }
}
const log = pino({ base: null, redact: ['token', 'key', '*.token', '*.key'] }, { write: logLine })
const sayAndEnd = (error: unknown): never => {
  log.fatal({ err: error }, 'the agent cannot go on')
  console.error(error instanceof Error ? (error.stack ?? error.message) : String(error))
  process.exit(1)
}
// what nobody expected: it begins anew from what is on disk, which is meant for exactly that
process.on('uncaughtException', sayAndEnd)
process.on('unhandledRejection', sayAndEnd)

declare const PORTAL_VERSION: string | undefined
const version = typeof PORTAL_VERSION === 'string' ? PORTAL_VERSION : 'source'

const readBootstrap = () => checkBootstrap(JSON.parse(readFileSync(path, 'utf8')))
const bootstrap = readBootstrap()
const confinement = await probeConfinement()
sweepCgroups()
let store: Promise<CheckpointStore> | null = null
const agent = new Agent({
  data,
  bootstrap,
  bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
  clocks: systemClocks,
  confinement,
  keeper: installKeeper(data),
  sdk: findSdk(import.meta.dirname),
  log,
  version,
  store: async () => {
    store ??= directoryStore(bootstrap.checkpoints.directory)
    // what is not there now may be there later
    store.catch(() => (store = null))
    return await store
  },
  notices: metadataFile(data),
  rereadBootstrap: () => {
    try {
      return readBootstrap()
    } catch (error) {
      log.warn({ err: error }, 'the bootstrap file cannot be read again')
      return null
    }
  },
  done: (why) => {
    log.info(why)
    agent.close()
    process.exit(0)
  },
})
log.info({ pid: process.pid, version, confines: confinement.confines, why: confinement.why }, 'started')
await agent.start()
const end = (signal: string) => {
  log.info({ signal }, 'ended; the jobs go on')
  agent.close()
  process.exit(0)
}
process.on('SIGTERM', () => end('SIGTERM'))
process.on('SIGINT', () => end('SIGINT'))
