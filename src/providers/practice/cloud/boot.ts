import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Instant } from '../../../core/time/index.ts'
import { privateFolder, readIfThere, writePrivate } from '../../files.ts'
import type { Bootstrap } from '../../port.ts'
import { identityOf, type ProcessIdentity } from '../../processes.ts'
import { machineMark, type Confinement } from './confine.ts'

/** Puts a machine's folder there, before anything runs in it: what its agent needs to find home, and no notice. */
export async function furnish(folder: string, bootstrap: Bootstrap): Promise<void> {
  await privateFolder(folder)
  await mkdir(join(folder, 'home'), { recursive: true, mode: 0o700 })
  await mkdir(join(folder, 'tmp'), { recursive: true, mode: 0o700 })
  await writePrivate(join(folder, 'bootstrap.json'), JSON.stringify(bootstrap))
  await writeNotice(folder, null)
}

/** What the provider tells a machine about itself; its agent watches this file. */
export const writeNotice = (folder: string, endsAt: Instant | null): Promise<void> =>
  writePrivate(join(folder, 'metadata.json'), JSON.stringify({ notice: endsAt === null ? null : { endsAt } }))

/**
 * Takes the one right to boot the machine (the link fails for everyone but the first) and goes on as the machine. A cloud that
 * was killed between a boot and writing it down finds the process by what this left.
 */
const claim =
  'echo $$ > "$1.$$" && ln "$1.$$" "$1" 2>/dev/null || { rm -f "$1.$$"; exit 73; }; rm -f "$1.$$"; shift; exec "$@"'

/**
 * The machine's first process. It starts the agent again when that was killed, as a service manager would, so that jobs outlive
 * their agent here too; an agent that ends by itself turns the machine off, and so does one that keeps dying.
 */
const init =
  'n=0; while :; do since=$(date +%s); "$@"; code=$?; [ "$code" -eq 0 ] && exit 0; ' +
  '[ $(($(date +%s) - since)) -ge 10 ] && n=0; n=$((n + 1)); [ "$n" -ge 20 ] && exit "$code"; sleep 0.2; done'

export interface Boot {
  readonly machineId: string
  readonly folder: string
  readonly agentEntry: string
  readonly confinement: Confinement
}

const claimFile = (folder: string): string => join(folder, 'boot.pid')

/** Starts a machine's processes, in a session of their own that outlives the cloud. Returns null when it booted before or did not boot. */
export function boot({ machineId, folder, agentEntry, confinement }: Boot): Promise<ProcessIdentity | null> {
  const agent = [process.execPath, agentEntry, join(folder, 'bootstrap.json')]
  const machine = [...confinement.prefix, 'sh', '-c', init, 'machine', ...agent]
  const console = openSync(join(folder, 'console.log'), 'a', 0o600)
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', claim, 'boot', claimFile(folder), ...machine], {
      cwd: folder,
      detached: true,
      stdio: ['ignore', console, console],
      env: machineEnvironment(machineId, folder),
    })
    closeSync(console)
    child.unref()
    child.on('error', () => resolve(null))
    child.on('spawn', () => resolve(child.pid === undefined ? null : identityOf(child.pid)))
  })
}

/** The process that booted this machine, if there was one and it lives: what a cloud asks that was killed while booting. */
export async function bootedBefore(
  folder: string,
  marked: readonly ProcessIdentity[],
): Promise<ProcessIdentity | null> {
  const pid = Number(await readIfThere(claimFile(folder)))
  return marked.find((one) => one.pid === pid) ?? null
}

/** A machine of its own has the programs of this one, and nothing of its owner's: a home and a place for temporary files of its own. */
function machineEnvironment(machineId: string, folder: string): NodeJS.ProcessEnv {
  const shared = [
    'PATH',
    'LANG',
    'LC_ALL',
    'LC_CTYPE',
    'TZ',
    'PYENV_ROOT',
    'ASDF_DATA_DIR',
    'MISE_DATA_DIR',
    'SSL_CERT_FILE',
  ]
  const env = Object.fromEntries(
    shared.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  )
  return {
    ...env,
    HOME: join(folder, 'home'),
    TMPDIR: join(folder, 'tmp'),
    ...pythonPackages(),
    [machineMark]: machineId,
  }
}

/** Packages that a person installed for Python count as part of the machine's image. In containers a user often has no home. */
const pythonPackages = (): Record<string, string> => {
  try {
    return { PYTHONUSERBASE: process.env.PYTHONUSERBASE ?? join(homedir(), '.local') }
  } catch {
    return {}
  }
}
