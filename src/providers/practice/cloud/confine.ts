import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { second } from '../../../core/time/index.ts'
import { childrenOf, identityOf, isAlive, kill, type ProcessIdentity } from '../../processes.ts'

/**
 * How a machine's processes are kept together, so that ending it leaves none. A PID namespace of its own is sure: when its
 * first process dies, the kernel kills all others, whatever they did to get away. Where `unshare` is not permitted (or
 * there is none) a variable in the environment marks them; a process that cleans its environment gets away from that.
 */
export interface Confinement {
  readonly kind: 'namespace' | 'environment'
  /** what stands before the machine's own command */
  readonly prefix: readonly string[]
}

const namespace = ['--pid', '--fork', '--kill-child', '--mount-proc']

/** The surest first. */
export const confinements: readonly Confinement[] = [
  { kind: 'namespace', prefix: ['unshare', ...namespace] },
  // without privileges: as the owner of a user namespace, inside which further namespaces can be made
  { kind: 'namespace', prefix: ['unshare', '--user', '--map-root-user', ...namespace] },
  { kind: 'environment', prefix: [] },
]

/** The surest way that works here, by trying. */
export async function findConfinement(): Promise<Confinement> {
  for (const one of confinements) if (one.prefix.length === 0 || (await permitted(one))) return one
  return { kind: 'environment', prefix: [] }
}

/** Whether a program can be run that way. */
export const permitted = ({ prefix }: Confinement): Promise<boolean> =>
  new Promise((resolve) => {
    const [program = 'true', ...args] = [...prefix, 'true']
    execFile(program, args, { timeout: 5 * second }, (error) => resolve(error === null))
  })

/** The variable that marks every process of a machine. */
export const machineMark = 'PORTAL_PRACTICE_MACHINE'

/**
 * Kills every process of a machine, and returns when none is left. `outer` is the process that was booted.
 * Throws when some are still there after ten seconds (one that the kernel cannot interrupt).
 */
export async function killAll(
  machineId: string,
  outer: ProcessIdentity | null,
  kind: Confinement['kind'],
): Promise<void> {
  const patience = Date.now() + 10 * second
  if (outer !== null) {
    if (kind === 'namespace') await killNamespace(outer)
    else kill(outer)
  }
  for (;;) {
    const left = markedProcesses(machineId)
    if (left.length === 0) return
    if (Date.now() > patience)
      throw new Error(
        `machine ${machineId}: ${left.length} processes cannot be ended: ${left.map(({ pid }) => pid).join(', ')}`,
      )
    for (const one of left) kill(one)
    await sleep(10)
  }
}

/** The namespace's first process goes last of all in it, and `outer` only after that: so its end says that all ended. */
async function killNamespace(outer: ProcessIdentity): Promise<void> {
  for (const first of (childrenOf(outer.pid) ?? []).map(identityOf)) if (first !== null) kill(first)
  const patience = Date.now() + 2 * second
  while (isAlive(outer) && Date.now() < patience) await sleep(5)
  // with it the kernel kills the first, and with that the rest
  kill(outer)
}

/** Who carries the mark of this machine, where `/proc` tells. */
export function markedProcesses(machineId: string): readonly ProcessIdentity[] {
  const mark = Buffer.from(`${machineMark}=${machineId}\0`)
  return processIds()
    .filter((pid) => pid !== process.pid && environmentOf(pid)?.includes(mark) === true)
    .map(identityOf)
    .filter((one) => one !== null)
}

function processIds(): readonly number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return []
  }
}

function environmentOf(pid: number): Buffer | null {
  try {
    return readFileSync(`/proc/${pid}/environ`)
  } catch {
    // another user's, or it ended
    return null
  }
}
