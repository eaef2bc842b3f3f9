import { readFileSync } from 'node:fs'
import type { Client, ClientTarget } from '../../contract/client.ts'
import { PortalError, portalError } from '../../contract/errors.ts'
import { homeDirectory, readServing, readToken, type Serving } from '../../contract/home.ts'
import type { Cli } from '../context.ts'
import { isOlder, version } from '../version.ts'

export interface ReachOptions {
  /** start a control plane where none runs; default yes */
  readonly start?: boolean
}

/** The data directory that this command works on. */
export const homeOf = (cli: Cli): string => homeDirectory(cli.env)

/**
 * A client of the control plane of the data directory. Where none runs, or one that is older than this command, it is
 * started first: jobs go on meanwhile, since their agents outlive it.
 *
 * @throws PortalError `not_serving` when none runs and none is to be started; what keeps one from starting otherwise
 */
export const reach = async (cli: Cli, { start = true }: ReachOptions = {}): Promise<Client> => {
  const home = homeOf(cli)
  const serving = servingNow(home)
  const token = readToken(home)
  if (serving && token) {
    if (!start || !isOlder(serving.version, version)) return clientAt({ url: serving.url, token })
    const { replace } = await import('./start.ts')
    return replace(cli, home, serving)
  }
  if (!start) throw portalError('not_serving', { home })
  const { startControlPlane } = await import('./start.ts')
  return startControlPlane(cli, home)
}

/** Who serves the data directory, if its process lives. A damaged note is no note: whoever starts writes a new one. */
export const servingNow = (home: string): Serving | null => {
  let serving: Serving | null
  try {
    serving = readServing(home)
  } catch (error) {
    if (error instanceof PortalError && error.code === 'protocol_unknown') return null
    throw error
  }
  return serving && isAlive(serving.pid) ? serving : null
}

/** Whether a process is there and runs. One that ended and that nobody waited for (in containers, often) is not. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  try {
    // `PID (NAME) STATE …`, where a name may hold anything but ends at the last parenthesis
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return !/^[ZXx]/.test(stat.slice(stat.lastIndexOf(')') + 2))
  } catch {
    return true // no such file system here
  }
}

/** Loaded where it is needed: help and completions of commands do without. */
const clientAt = async (target: ClientTarget): Promise<Client> =>
  (await import('../../contract/client.ts')).createClient(target)
