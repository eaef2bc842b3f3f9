import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  write,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * A job's own cgroups, where this machine lets us make some: version 2 for freezing (and for measuring, where it has the
 * controllers), version 1 for measuring where that is how the machine does it. The first process of the namespace stays
 * outside, so that freezing never touches it.
 */
export interface JobCgroups {
  /** version 2; null: none to be had */
  readonly unified: string | null
  /** version 1 */
  readonly memory: string | null
  readonly cpuacct: string | null
}

export const noCgroups: JobCgroups = { unified: null, memory: null, cpuacct: null }

/** Where the process is put: all of them. */
export const foldersOf = ({ unified, memory, cpuacct }: JobCgroups): readonly string[] =>
  [...new Set([unified, memory, cpuacct])].filter((folder) => folder !== null)

interface Mounts {
  readonly unified: string | null
  readonly v1: ReadonlyMap<string, string>
}

const mounts = (): Mounts => {
  let unified: string | null = null
  const v1 = new Map<string, string>()
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const point = before.split(' ')[4]
    const [type, , options = ''] = after.split(' ')
    if (!point) continue
    if (type === 'cgroup2') unified ??= point
    if (type === 'cgroup') for (const option of options.split(',')) if (!v1.has(option)) v1.set(option, point)
  }
  return { unified, v1 }
}

/** The own cgroup's path of a hierarchy; '' names version 2. */
const ownPath = (controller: string): string => {
  for (const line of readFileSync('/proc/self/cgroup', 'utf8').split('\n')) {
    const [, names = '', ...path] = line.split(':')
    if (names.split(',').includes(controller)) return path.join(':')
  }
  return '/'
}

const make = (folder: string): string | null => {
  try {
    mkdirSync(folder, { recursive: true })
    accessSync(join(folder, 'cgroup.procs'), constants.W_OK)
    return folder
  } catch {
    return null
  }
}

const attempt = (file: string, text: string): boolean => {
  try {
    writeFileSync(file, text)
    return true
  } catch {
    return false
  }
}

/** The groups of version 2 stand beside the agent's own, not in it: ending the agent's unit must not end its jobs. */
const parentOf = (own: string): string => join(own === '/' ? '/' : dirname(own), 'portal-jobs')

/** Makes the cgroups of one job, as far as permitted; nothing is an error. `name` must be new on this machine. */
export const makeCgroups = (name: string): JobCgroups => {
  try {
    const { unified, v1 } = mounts()
    const parent = unified ? join(unified, parentOf(ownPath(''))) : null
    if (parent && make(parent)) {
      // where the machine already hands them out, as systemd does; only once, since a write there waits for every move
      const has = (file: string): readonly string[] => read(join(parent, file))?.trim().split(' ') ?? []
      for (const controller of ['memory', 'cpu'])
        if (has('cgroup.controllers').includes(controller) && !has('cgroup.subtree_control').includes(controller))
          attempt(join(parent, 'cgroup.subtree_control'), `+${controller}`)
    }
    const own = parent ? make(join(parent, name)) : null
    const measured = own !== null && read(join(own, 'memory.current')) !== null
    const old = (controller: string): string | null => {
      const mount = v1.get(controller)
      return mount && !measured ? make(join(mount, ownPath(controller), `portal-${name}`)) : null
    }
    return { unified: own, memory: old('memory'), cpuacct: old('cpuacct') }
  } catch {
    return noCgroups
  }
}

/** Whether cgroups of version 2 can be made here, and killed whole. */
export const canKillCgroups = (): boolean => {
  const groups = makeCgroups(`probe-${process.pid}-00000000`)
  const can = groups.unified !== null && attempt(join(groups.unified, 'cgroup.kill'), '1')
  removeCgroups(groups)
  return can
}

/**
 * Moving a process into a cgroup waits until every CPU has passed the kernel's lock once (RCU, 10 ms and more), except within
 * some 10 ms after another move. So one that changes nothing goes ahead, while what the job needs is brought and its keeper is
 * started. Meanwhile no cgroup can be made: those that are needed are there already.
 */
export const easeMoves = (): void =>
  attemptTo(() => {
    const { unified, v1 } = mounts()
    const folder = unified ? join(unified, ownPath('')) : join(v1.get('memory') ?? '', ownPath('memory'))
    const file = openSync(join(folder, 'cgroup.procs'), 'w')
    write(file, String(process.pid), () => closeSync(file))
  })

/** Removes them once they are empty; what still has processes stays. */
export const removeCgroups = (groups: JobCgroups): void => {
  for (const folder of foldersOf(groups)) attemptTo(() => rmdirSync(folder))
  // the last one takes the common folder along
  const { unified } = groups
  if (unified) attemptTo(() => rmdirSync(dirname(unified)))
}

/** Removes what attempts of machines that are gone left behind: groups of ours without a process, older than a minute. */
export const sweepCgroups = (): void =>
  attemptTo(() => {
    const { unified, v1 } = mounts()
    if (unified) sweep(join(unified, parentOf(ownPath(''))), /-[0-9a-f]{8}$/)
    for (const [controller, mount] of v1)
      if (controller === 'memory' || controller === 'cpuacct')
        sweep(join(mount, ownPath(controller)), /^portal-.+-[0-9a-f]{8}$/)
  })

const sweep = (parent: string, ours: RegExp): void =>
  attemptTo(() => {
    for (const name of readdirSync(parent)) {
      const folder = join(parent, name)
      // one with a process in it cannot be removed
      if (ours.test(name) && Date.now() - statSync(folder).ctimeMs > 60_000) attemptTo(() => rmdirSync(folder))
    }
  })

const attemptTo = (act: () => void): void => {
  try {
    act()
  } catch {
    // not ours, or not empty
  }
}

const read = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

const field = (text: string | null, name: string): number | null => {
  const found = text?.split('\n').find((line) => line.startsWith(`${name} `))
  return found ? Number(found.slice(name.length + 1)) : null
}

const number = (text: string | null): number | null =>
  text === null || Number.isNaN(Number(text)) ? null : Number(text)

/** Whether any process is in it; null: not known. */
export const isPopulated = ({ unified }: JobCgroups): boolean | null => {
  const populated = unified ? field(read(join(unified, 'cgroup.events')), 'populated') : null
  return populated === null ? null : populated === 1
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Freezes everything in it; true once the kernel says that it is. */
export const freezeCgroup = async ({ unified }: JobCgroups): Promise<boolean> => {
  if (!unified || !attempt(join(unified, 'cgroup.freeze'), '1')) return false
  for (let round = 0; round < 400; round++) {
    if (field(read(join(unified, 'cgroup.events')), 'frozen') === 1) return true
    await pause(round < 20 ? 1 : 5)
  }
  return false
}

export const thawCgroup = ({ unified }: JobCgroups): void => {
  if (unified) attempt(join(unified, 'cgroup.freeze'), '0')
}

/** The kernel's own figures; null: it keeps none here. */
export interface Usage {
  /** CPU since the start, ms */
  readonly cpuMs: number | null
  /** without page cache that could be given back at once */
  readonly memoryBytes: number | null
  readonly memoryPeakBytes: number | null
}

export const usageOf = ({ unified, memory, cpuacct }: JobCgroups): Usage => {
  const micros = unified ? field(read(join(unified, 'cpu.stat')), 'usage_usec') : null
  const nanos = cpuacct ? number(read(join(cpuacct, 'cpuacct.usage'))) : null
  const now = unified ? number(read(join(unified, 'memory.current'))) : null
  const cpuMs = micros !== null && now !== null ? micros / 1e3 : nanos !== null ? nanos / 1e6 : micros && micros / 1e3
  if (unified && now !== null) {
    const idle = field(read(join(unified, 'memory.stat')), 'inactive_file') ?? 0
    return { cpuMs, memoryBytes: now - idle, memoryPeakBytes: number(read(join(unified, 'memory.peak'))) }
  }
  const old = memory ? number(read(join(memory, 'memory.usage_in_bytes'))) : null
  if (!memory || old === null) return { cpuMs, memoryBytes: null, memoryPeakBytes: null }
  const idle = field(read(join(memory, 'memory.stat')), 'total_inactive_file') ?? 0
  return {
    cpuMs,
    memoryBytes: old - idle,
    memoryPeakBytes: number(read(join(memory, 'memory.max_usage_in_bytes'))),
  }
}
