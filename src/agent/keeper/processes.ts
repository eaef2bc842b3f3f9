import { readdirSync, readFileSync } from 'node:fs'

/** A process as `/proc/PID/stat` tells it. A pid alone proves nothing: with `start` it names one process of this boot. */
export interface Process {
  readonly pid: number
  readonly parent: number
  /** R, S, D, T (stopped), t (traced), Z (dead, not reaped), … */
  readonly state: string
  /** ticks since boot */
  readonly start: number
  /** ticks of CPU, its own and those of the children that it reaped */
  readonly ticks: number
  readonly residentPages: number
}

/** null: there is none. */
export const processOf = (pid: number): Process | null => {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return null
  }
  // the name stands in parentheses and may hold anything, parentheses too
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const number = (index: number): number => Number(fields[index - 3])
  return {
    pid,
    parent: number(4),
    state: fields[0] ?? '?',
    start: number(22),
    ticks: number(14) + number(15) + number(16) + number(17),
    residentPages: number(24),
  }
}

/**
 * Whether that very process is there and not dead. A namespace's first process is dead only once its namespace is empty:
 * that it waits to be reaped by somebody is no life.
 */
export const isAlive = ({ pid, start }: { readonly pid: number; readonly start: number }): boolean => {
  const process = processOf(pid)
  return process !== null && process.start === start && process.state !== 'Z' && process.state !== 'X'
}

/** Everything that descends from `root`, without it. Whoever is in a PID namespace descends from its first process. */
export const descendantsOf = (root: number): readonly Process[] => {
  const children = new Map<number, Process[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const process = processOf(Number(name))
    if (!process) continue
    const siblings = children.get(process.parent)
    if (siblings) siblings.push(process)
    else children.set(process.parent, [process])
  }
  const found: Process[] = []
  const look = [root]
  for (let next = look.pop(); next !== undefined; next = look.pop())
    for (const child of children.get(next) ?? []) {
      found.push(child)
      look.push(child.pid)
    }
  return found
}

/** Its own children, asked of the kernel where it tells them: reading all of `/proc` costs milliseconds. */
export const childrenOf = (pid: number): readonly Process[] => {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
  } catch {
    return descendantsOf(pid).filter(({ parent }) => parent === pid)
  }
  return text
    .split(' ')
    .flatMap((child) => (child === '' ? [] : (processOf(Number(child)) ?? [])))
    .filter(({ parent }) => parent === pid)
}

/** Sends a signal; that the process is gone meanwhile is no error. */
export const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Stops (SIGSTOP) whatever descends from `root`, over and over until nothing new was born meanwhile; `root` itself goes on.
 * False: after `tries` there was still one that ran.
 */
export const stopAll = async (root: number, tries = 200): Promise<boolean> => {
  const signalled = new Set<string>()
  let quiet = 0
  for (let round = 0; round < tries; round++) {
    // one that waits in the kernel (for its vforked child, for a disk) stops before it comes back from there
    const isStill = ({ pid, start, state }: Process): boolean =>
      'TtZX'.includes(state) || (state === 'D' && signalled.has(`${pid} ${start}`))
    const running = descendantsOf(root).filter((process) => !isStill(process))
    for (const { pid, start } of running) {
      signal(pid, 'SIGSTOP')
      signalled.add(`${pid} ${start}`)
    }
    quiet = running.length === 0 ? quiet + 1 : 0
    if (quiet === 2) return true
    if (running.length > 0) await pause(1)
  }
  return false
}

/** Lets go on what `stopAll` stopped; a stop that has not reached a waiting parent yet is taken back by the same signal. */
export const continueAll = (root: number): void => {
  for (const { pid, state } of descendantsOf(root)) if (state === 'T' || state === 'D') signal(pid, 'SIGCONT')
}
