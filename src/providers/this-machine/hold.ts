/**
 * What runs in the agent's process before the agent: it takes the lock that lets one agent at a time run for this machine,
 * and writes down who holds it. The kernel takes the lock back however the agent ends, and no process that the agent starts
 * inherits it, so that keepers and jobs that outlive an agent never keep the next one out.
 *
 * It is written beside the bootstrap, since it has to work before and whatever the agent's own program is. Node loads it again in
 * the agent's workers and forks, where it must do nothing.
 */
export function holdModule({ lock, holder, bootstrap }: HoldPaths): string {
  return `// takes the lock of this machine's agent; written by Portal at each start
import { DatabaseSync } from 'node:sqlite'
import { execFileSync } from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
const paths = ${JSON.stringify({ lock, holder, bootstrap })}
if (isMainThread && process.argv[2] === paths.bootstrap && process.send === undefined) {
  const database = new DatabaseSync(paths.lock)
  globalThis[Symbol.for('portal.agent.lock')] = database
  try { database.exec('BEGIN EXCLUSIVE') } catch { process.exit(${alreadyHeld}) }
  let started
  if (process.platform === 'linux') {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    started = boot + ':' + stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } else started = execFileSync('ps', ['-o', 'lstart=', '-p', String(process.pid)], { encoding: 'utf8' }).trim()
  writeFileSync(paths.holder + '.tmp', JSON.stringify({ pid: process.pid, started }), { mode: 0o600 })
  renameSync(paths.holder + '.tmp', paths.holder)
}
`
}

/** The exit code of an agent that found another one running. */
export const alreadyHeld = 73

export interface HoldPaths {
  readonly lock: string
  /** where the holder writes its pid and start */
  readonly holder: string
  /** the agent's one argument: how the module knows the agent from a process that the agent started */
  readonly bootstrap: string
}
