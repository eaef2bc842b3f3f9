import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** One process for sure: a pid alone comes back to somebody else after a while. */
export interface ProcessIdentity {
  readonly pid: number
  /** the machine's boot and the process's start in it */
  readonly started: string
}

/** Who has this pid now; null when nobody does, or only what is left of somebody who ended. */
export function identityOf(pid: number): ProcessIdentity | null {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null
  if (process.platform !== 'linux') return elsewhere(pid)
  const stat = quietly(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  return stat === null ? null : fromStat(pid, stat)
}

/** Reads the text of `/proc/PID/stat`. Its second field, the name, may hold spaces and brackets: what counts comes after the last one. */
export function fromStat(pid: number, stat: string): ProcessIdentity | null {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, started] = [fields[0], fields[19]]
  if (started === undefined || state === 'Z' || state === 'X') return null
  return { pid, started: `${bootId()}:${started.trim()}` }
}

export function isAlive(identity: ProcessIdentity | null): boolean {
  return identity !== null && identityOf(identity.pid)?.started === identity.started
}

/** Ends exactly this process; that it is gone already is no error. */
export function kill(identity: ProcessIdentity, signal: NodeJS.Signals = 'SIGKILL'): void {
  if (isAlive(identity)) quietly(() => process.kill(identity.pid, signal))
}

/** The direct children of a process, where the kernel tells; else null. */
export function childrenOf(pid: number): readonly number[] | null {
  const text = quietly(() => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'))
  return text === null ? null : text.split(' ').filter(Boolean).map(Number)
}

/** Reads back what was written as JSON; anything else is nobody. */
export function parseIdentity(value: unknown): ProcessIdentity | null {
  if (typeof value !== 'object' || value === null || !('pid' in value) || !('started' in value)) return null
  const { pid, started } = value
  return typeof pid === 'number' && typeof started === 'string' ? { pid, started } : null
}

let boot: string | undefined
const bootId = (): string =>
  (boot ??= quietly(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()) ?? 'boot')

function elsewhere(pid: number): ProcessIdentity | null {
  const line = quietly(() =>
    execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim(),
  )
  if (line === null || line === '' || line.startsWith('Z')) return null
  return { pid, started: line.slice(line.indexOf(' ') + 1).trim() }
}

function quietly<T>(read: () => T): T | null {
  try {
    return read()
  } catch {
    return null
  }
}
