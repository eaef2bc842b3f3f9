import { execFile } from 'node:child_process'
import { canKillCgroups } from './cgroup.ts'

/** How jobs are kept together on this machine, found out once by trying. */
export interface Confinement {
  /**
   * `namespace`: the kernel ends every process of a job with its first one; `cgroup`: the keeper, or an agent after it,
   * kills the group whole; `none`: nobody can promise it
   */
  readonly confines: 'namespace' | 'cgroup' | 'none'
  /** the words that put the keeper's inside there, without any that would need quoting */
  readonly wrap: string
  /** why it is no better */
  readonly why: string | null
}

/** Runs a few words; what they wrote, or null when they failed. */
const say = (words: readonly string[]): Promise<string | null> =>
  new Promise((resolve) => {
    const [file = '', ...args] = words
    execFile(file, args, { timeout: 5000, env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' } }, (error, stdout) =>
      resolve(error ? null : stdout.trim()),
    )
  })

const dies = ['setpriv', '--pdeathsig', 'KILL']
// a shell's background child ignores SIGINT; what the job inherits must be the default again
const signals = ['env', '--default-signal=INT,QUIT']
const pid = ['--pid', '--fork', '--kill-child=KILL']
const proc = ['--mount-proc', '--propagation', 'slave']
const user = ['--user', '--map-current-user']

/** From the most that is wanted to the least that still confines. */
const spaces = [
  ['unshare', ...pid, ...proc],
  ['unshare', ...pid],
  ['unshare', ...user, ...pid, ...proc],
  ['unshare', ...user, ...pid],
] as const

/** Tries what this machine permits. A few ms where the first try succeeds. */
export const probeConfinement = async (): Promise<Confinement> => {
  const reset = (await say([...signals, 'true'])) === null ? [] : signals
  if ((await say([...dies, 'true'])) !== null)
    for (const space of spaces) {
      const words = [...dies, ...reset, ...space, 'setsid']
      if ((await say([...words, 'sh', '-c', 'echo $$'])) === '1')
        return { confines: 'namespace', wrap: words.join(' '), why: null }
    }
  const without = (await say([...dies, 'true'])) === null ? [] : dies
  const wrap = [...without, ...reset, 'setsid'].join(' ')
  const why =
    'PID namespaces are not permitted here, neither directly nor in a user namespace (unshare and setpriv of util-linux)'
  return canKillCgroups()
    ? { confines: 'cgroup', wrap, why }
    : { confines: 'none', wrap, why: `${why}, nor cgroups of version 2 of one’s own` }
}
