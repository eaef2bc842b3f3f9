import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive, kill, identityOf, type ProcessIdentity } from '../../src/providers/processes.ts'

/** A process of this machine as a test finds it, whatever namespace it is in. */
export interface Found extends ProcessIdentity {
  readonly args: readonly string[]
}

/** Every process whose command line or environment names the folder, but this one. */
export function processesNaming(folder: string): readonly Found[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid === process.pid) return []
    const line = read(pid, 'cmdline')
    if (!line.includes(folder) && !read(pid, 'environ').includes(folder)) return []
    const identity = identityOf(pid)
    return identity ? [{ ...identity, args: line.split('\0').slice(0, -1) }] : []
  })
}

/** The processes below one, children before grandchildren. */
export function descendants(pid: number): readonly number[] {
  const children = read(pid, `task/${pid}/children`).split(' ').filter(Boolean).map(Number)
  return [...children, ...children.flatMap(descendants)]
}

/** Ends processes by SIGKILL and returns once they are gone. */
export async function killHard(processes: readonly ProcessIdentity[]): Promise<void> {
  for (const one of processes) kill(one)
  await gone(processes)
}

/** Returns once none of them runs. @throws when some still do after `within` ms */
export async function gone(processes: readonly ProcessIdentity[], within = 20_000): Promise<void> {
  const until = performance.now() + within
  for (;;) {
    const left = processes.filter(isAlive)
    if (left.length === 0) return
    if (performance.now() > until) throw new Error(`still there: ${left.map(({ pid }) => pid).join(', ')}`)
    await sleep(5)
  }
}

function read(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1')
  } catch {
    return ''
  }
}
