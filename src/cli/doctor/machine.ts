import { execFile } from 'node:child_process'
import { access, constants, readFile, statfs } from 'node:fs/promises'
import { coarse, size } from '../format.ts'
import { fail, ok, warn, type Finding } from './check.ts'

interface Ran {
  readonly code: number | null
  readonly output: string
}

/** Runs a program with a list of arguments, at most 5 s; null: there is no such program. */
const ran = (program: string, args: readonly string[]): Promise<Ran | null> =>
  new Promise((resolve) => {
    execFile(program, [...args], { timeout: 5000, encoding: 'utf8' }, (error, stdout, stderr) => {
      if (error && (error as NodeJS.ErrnoException).code === 'ENOENT') return resolve(null)
      const code = error ? (typeof error.code === 'number' ? error.code : null) : 0
      resolve({ code, output: `${stdout}${stderr}`.trim() })
    })
  })

const firstLine = (text: string): string => text.split('\n')[0] ?? ''

export const node = async (): Promise<Finding> => {
  const major = Number(process.versions.node.split('.')[0])
  return major >= 24
    ? ok('node', `Node ${process.versions.node} (${process.execPath})`)
    : fail('node', `Node ${process.versions.node} is older than 24`, 'start Portal by bin/portal, or install Node 24')
}

/** Jobs in Python need 3.9; without one, everything else works. */
export const python = async (): Promise<Finding> => {
  const answer = await ran('python3', ['--version'])
  const match = /Python (\d+)\.(\d+)(\S*)/.exec(answer?.output ?? '')
  if (!match)
    return warn('python3', 'there is no python3', 'install Python 3.9 or newer if your jobs are written in Python')
  const version = `${match[1]}.${match[2]}${match[3]}`
  return Number(match[1]) > 3 || (Number(match[1]) === 3 && Number(match[2]) >= 9)
    ? ok('python3', `Python ${version}`)
    : warn(
        'python3',
        `Python ${version} is older than 3.9`,
        'install Python 3.9 or newer if your jobs are written in Python',
      )
}

/** Whether every process of a job can be ended for sure (its namespace dies with its first process). */
export const namespaces = async (): Promise<Finding> => {
  const advice = 'jobs run, but one that leaves processes behind is given to another machine only on your word'
  const args = ['--pid', '--fork', '--kill-child', 'true']
  const answer = await ran('unshare', process.getuid?.() === 0 ? args : ['--user', '--map-root-user', ...args])
  if (answer === null) return warn('namespaces', 'there is no unshare', `install util-linux; until then ${advice}`)
  if (answer.code === 0) return ok('namespaces', 'PID namespaces with kill-on-death work')
  return warn(
    'namespaces',
    `unshare failed: ${firstLine(answer.output)}`,
    `allow user namespaces; until then ${advice}`,
  )
}

const writable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  )

/** Freezing a held job and measuring it: cgroup v2 first, v1 second, signals where there is neither. */
export const cgroups = async (): Promise<readonly Finding[]> => {
  const own = await readFile('/proc/self/cgroup', 'utf8').catch(() => '')
  const v2 = await readFile('/sys/fs/cgroup/cgroup.controllers', 'utf8').catch(() => null)
  if (v2 !== null) {
    const at = `/sys/fs/cgroup${/^0::(.*)$/m.exec(own)?.[1] ?? '/'}`
    const can = (await writable(at)) && (await writable(`${at}/cgroup.procs`))
    const measures = ['cpu', 'memory', 'pids'].filter((name) => v2.split(/\s+/).includes(name))
    return [
      can
        ? ok('freezer', `cgroup v2, ${at} may be written`)
        : warn(
            'freezer',
            `cgroup v2, but ${at} may not be written`,
            'held jobs are frozen by SIGSTOP of each process instead; to change that run Portal under `systemd-run --user --scope -p Delegate=yes`',
          ),
      measures.length === 3
        ? ok('measures', 'cpu, memory and pids are measured by cgroup v2')
        : warn(
            'measures',
            `only ${measures.join(', ') || 'nothing'} is measured by cgroup v2`,
            'enable the cpu, memory and pids controllers; until then /proc is read',
          ),
    ]
  }
  const freezer = await writable('/sys/fs/cgroup/freezer/cgroup.procs')
  const memory = await writable('/sys/fs/cgroup/memory/cgroup.procs')
  return [
    freezer
      ? ok('freezer', 'cgroup v1, its freezer may be written')
      : warn('freezer', 'no cgroup freezer may be written', 'held jobs are frozen by SIGSTOP of each process instead'),
    memory
      ? ok('measures', 'cpu and memory are measured by cgroup v1')
      : warn(
          'measures',
          'no cgroup measures may be used',
          'cpu and memory are read from /proc instead, which misses processes that ended',
        ),
  ]
}

/** Whether the wall clock is plausible and keeps step with the monotonic one. */
export const clocks = async (): Promise<Finding> => {
  if (Date.now() < Date.UTC(2025, 0)) return fail('clock', `the clock says ${new Date().toISOString()}`, 'set the time')
  const wall = Date.now()
  const monotonic = performance.now()
  await new Promise((resolve) => setTimeout(resolve, 60))
  const off = Math.abs(Date.now() - wall - (performance.now() - monotonic))
  return off > 20
    ? warn(
        'clock',
        `the wall clock moved ${coarse(off)} against the monotonic one within 60 ms`,
        'look at what sets the time; deadlines by the calendar wait until it is steady',
      )
    : ok('clock', `${new Date().toISOString()}, in step with the monotonic clock`)
}

/** Free room where the data directory is. */
export const disk = async (path: string): Promise<Finding> => {
  const { bavail, bsize, files, ffree } = await statfs(path)
  const free = bavail * bsize
  const says = `${size(free)} free for ${path}`
  const advice = 'make room: a save that finds none fails by name, and its job runs on unsaved'
  if (free < 200 * 1024 ** 2) return fail('disk', says, advice)
  if (free < 2 * 1024 ** 3) return warn('disk', says, advice)
  if (files > 0 && ffree < 10_000) return warn('disk', `${says}, but only ${ffree} more files`, advice)
  return ok('disk', says)
}
