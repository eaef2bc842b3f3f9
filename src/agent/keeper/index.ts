import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  watch,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Duration } from '../../core/time/index.ts'
import { easeMoves, foldersOf, freezeCgroup, isPopulated, type JobCgroups, thawCgroup } from './cgroup.ts'
import type { Confinement } from './confine.ts'
import { childrenOf, continueAll, descendantsOf, isAlive, signal, stopAll } from './processes.ts'

/**
 * One attempt's keeper, seen from the agent: `keeper.sh` in a folder of its own, which outlives whoever started it. All
 * that is known of it lies in that folder, so a new agent sees what the old one saw.
 */
export interface KeeperFolder {
  readonly folder: string
  readonly cgroups: JobCgroups
}

/** What the exit file says. `new`: never begun; `begun`: running, or lost without a word. */
export type Kept =
  | { readonly is: 'new' | 'begun' }
  | { readonly is: 'exit'; readonly code: number }
  | { readonly is: 'signal'; readonly number: number }
  | { readonly is: 'deadline' }
  | { readonly is: 'no-start'; readonly code: number }
  | { readonly is: 'no-workdir' }

const boot = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()

/** Puts the script into `data`, under its hash: an upgraded agent never touches the one that runs. Returns its path. */
export const installKeeper = (data: string): string => {
  const script = readFileSync(new URL('./keeper.sh', import.meta.url))
  const path = join(data, `keeper-${createHash('sha256').update(script).digest('hex').slice(0, 12)}.sh`)
  if (!existsSync(path)) {
    writeFileSync(`${path}.${process.pid}`, script, { mode: 0o600 })
    renameSync(`${path}.${process.pid}`, path)
  }
  return path
}

/** Makes what the keeper finds at its start; done twice, the second time changes nothing. */
export const layOut = (folder: string): void => {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const name of ['log', 'how']) closeSync(openSync(join(folder, name), 'a', 0o600))
  const path = join(folder, 'exit')
  if (existsSync(path)) return
  const file = openSync(`${path}.new`, 'w', 0o600)
  writeSync(file, `${'new'.padEnd(63)}\n`)
  closeSync(file)
  renameSync(`${path}.new`, path)
}

/** Rewrites the deadline in place: whole seconds of boot time, rounded down; `never` has none. */
export const writeDeadline = (folder: string, at: Duration | 'never'): void => {
  const word = at === 'never' ? 'never' : String(Math.max(0, Math.floor(at / 1000)))
  const line = `${boot()} ${word} ${word}`.padEnd(95)
  const path = join(folder, 'deadline')
  const file = openSync(path, existsSync(path) ? 'r+' : 'w', 0o600)
  try {
    writeSync(file, `${line}\n`, 0)
  } finally {
    closeSync(file)
  }
}

/** Boot time of the deadline, ms; Infinity: never; null: none that counts under this boot. */
export const readDeadline = (folder: string): Duration | null => {
  const [id, at = '', again] = textOf(join(folder, 'deadline')).trim().split(' ')
  if (id !== boot() || at !== again) return null
  if (at === 'never') return Infinity
  return /^\d+$/.test(at) ? Number(at) * 1000 : null
}

/** Marks an attempt that has not begun as over: a keeper that still comes up ends at once. */
export const shutKeeper = (folder: string): void => {
  const path = join(folder, 'exit')
  if (!existsSync(path) || keptOf(folder).is !== 'new') return
  const file = openSync(path, 'r+')
  try {
    writeSync(file, `${'void'.padEnd(63)}\n`, 0)
  } finally {
    closeSync(file)
  }
}

/**
 * What it says about how the job ended. Unreadable counts as `begun`, also where the file is not there any more: it was laid
 * out before anything was started, and a job that removed it must not be begun again.
 */
export const keptOf = (folder: string): Kept => {
  let text: string
  try {
    text = readFileSync(join(folder, 'exit'), 'utf8')
  } catch {
    return { is: 'begun' }
  }
  const [word = '', number = ''] = text.trim().split(' ')
  if (word === 'new' || word === 'void') return { is: 'new' }
  if (word === 'exit' || word === 'no-start') return { is: word, code: Number(number) }
  if (word === 'signal') return { is: 'signal', number: Number(number) }
  if (word === 'deadline' || word === 'no-workdir') return { is: word }
  return { is: 'begun' }
}

/** The keeper's outer process, if it was started under this boot and is there. */
export const keeperOf = (folder: string): First | null => {
  let text: string
  try {
    text = readFileSync(join(folder, 'keeper'), 'utf8')
  } catch {
    return null
  }
  const [id, pid, start] = text.split(' ')
  if (id !== boot() || !text.endsWith('\n')) return null
  const found = { pid: Number(pid), start: Number(start) }
  return isAlive(found) ? found : null
}

/** A process of the job's side, told by pid and start time. */
export interface First {
  readonly pid: number
  readonly start: number
}

/** The namespace's first process, which is the parent of the job; null: not there (yet, or any more). */
export const firstOf = (folder: string): First | null => {
  const keeper = keeperOf(folder)
  if (!keeper) return null
  // keeper → unshare → first process; without a namespace the first process is the keeper's own child
  const below = childrenOf(keeper.pid)
  const first =
    below.flatMap(({ pid }) => childrenOf(pid)).find(({ pid }) => isFirst(pid)) ??
    below.find(
      ({ pid }) =>
        /^[^\0]*sh\0/.test(textOf(`/proc/${pid}/cmdline`)) &&
        textOf(`/proc/${pid}/cmdline`).includes(`\0first\0${folder}\0`),
    )
  return first ? { pid: first.pid, start: first.start } : null
}

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

const isFirst = (pid: number): boolean => /^NSpid:(\t\d+)+\t1$/m.test(textOf(`/proc/${pid}/status`))

export interface KeeperStart {
  readonly script: string
  readonly keeper: KeeperFolder
  readonly confinement: Confinement
  readonly workdir: string
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly shell?: string
}

// what would change the keeper's own helpers, or what a shell would not hand on, goes in front of the command instead
const isOutOfTheWay = (name: string): boolean =>
  !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || /^(LD_|GLIBC_TUNABLES$|BASH|SHELLOPTS$|ENV$|IFS$|PS4$|OPTIND$)/.test(name)

/**
 * Starts the keeper, which starts the job, in a session of its own. A keeper that is there already is left as it is, and
 * a job that was begun once is never begun again. `over` is called when this very keeper has ended, or
 * did not come up at all, which `failed` is told first.
 */
export const startKeeper = (start: KeeperStart, over: () => void, failed: (error: Error) => void = () => {}): void => {
  const { script, keeper, confinement, workdir, env, shell = '/bin/sh' } = start
  const aside = Object.entries(env).filter(([name]) => isOutOfTheWay(name))
  const plain = Object.fromEntries(Object.entries(env).filter(([name]) => !isOutOfTheWay(name)))
  const command =
    aside.length > 0
      ? ['/usr/bin/env', ...aside.map(([name, value]) => `${name}=${value}`), ...start.command]
      : start.command
  const groups = foldersOf(keeper.cgroups).join(' ')
  const space = confinement.confines
  if (groups !== '') easeMoves()
  const child = spawn(
    shell,
    [script, 'keep', keeper.folder, workdir, groups, space, confinement.wrap, shell, ...command],
    { cwd: '/', env: plain, detached: true, stdio: 'ignore' },
  )
  child.once('exit', over)
  child.once('error', (error) => {
    failed(error)
    over()
  })
  child.unref()
}

/**
 * Whether nothing of the attempt is left: its keeper gone, its namespace's first process (as seen before) gone too,
 * its cgroup empty. Only then is it *stopped*.
 */
export const isOver = ({ folder, cgroups }: KeeperFolder, first: First | null): boolean =>
  keeperOf(folder) === null && (first === null || !isAlive(first)) && isPopulated(cgroups) !== true

/** Ends every process of the attempt. Repeated by the caller until `isOver`. */
export const killAll = ({ folder, cgroups }: KeeperFolder, first: First | null): void => {
  const inside = firstOf(folder) ?? (first && isAlive(first) ? first : null)
  if (inside) {
    // where there is no namespace its children are not the kernel's to end
    const children = descendantsOf(inside.pid)
    signal(inside.pid, 'SIGKILL')
    for (const child of children) if (isAlive(child)) signal(child.pid, 'SIGKILL')
  }
  if (cgroups.unified)
    try {
      writeFileSync(join(cgroups.unified, 'cgroup.kill'), '1')
    } catch {
      // older kernels have none; the namespace ends them
    }
  // with nothing inside yet, the keeper is only starting: what it starts dies with it; afterwards it goes by itself
  const keeper = keeperOf(folder)
  if (keeper && !inside && !first) signal(keeper.pid, 'SIGKILL')
}

/** Asks the job to end: a signal to its process group, as a terminal would. */
export const askToEnd = (folder: string): void => {
  const first = firstOf(folder)
  if (first) signal(-first.pid, 'SIGTERM')
}

/** Stands everything of the job still, but not what keeps it. True: nothing of it runs any more. */
export const freeze = async ({ folder, cgroups }: KeeperFolder): Promise<boolean> => {
  const frozen = await freezeCgroup(cgroups)
  const first = firstOf(folder)
  if (!first) return true
  for (let looks = frozen ? freezeLooks : 0; looks > 0; looks--) {
    const members = new Set(membersOf(cgroups))
    const outside = descendantsOf(first.pid).filter(({ pid, state }) => !members.has(pid) && !'ZX'.includes(state))
    if (outside.length === 0) return true
    // what was just ending is in no cgroup any more, and not dead yet
    await pause(2)
  }
  // a job may have left its cgroup: whatever still runs is stopped one by one
  return stopAll(first.pid)
}

/** How often it is looked whether what is outside of a frozen cgroup only was about to end. */
const freezeLooks = 20

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const thaw = ({ folder, cgroups }: KeeperFolder): void => {
  thawCgroup(cgroups)
  const first = firstOf(folder)
  if (first) continueAll(first.pid)
}

const membersOf = ({ unified }: JobCgroups): readonly number[] => {
  if (!unified) return []
  try {
    return readFileSync(join(unified, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/** Calls back when the exit file or the log may have changed. */
export const watchKeeper = (folder: string, changed: (name: string) => void): { close(): void } =>
  watch(folder, { persistent: false }, (_, name) => changed(name ?? ''))
