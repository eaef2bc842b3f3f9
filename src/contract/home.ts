/**
 * Where Portal keeps everything, and how a command finds the control plane that serves it. Small on purpose: every command
 * loads it. What creates and guards the directory stands in `control/home.ts`.
 */
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { portalError } from './errors.ts'

/** What a control plane writes into `serve.json` once it listens. */
export interface Serving {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  readonly pid: number
  readonly version: string
  /** ms since 1970 UTC */
  readonly startedAt: number
}

/** The data directory: `PORTAL_HOME`, else the platform's data folder. */
export function homeDirectory(
  env: Readonly<Record<string, string | undefined>> = process.env,
  platform: string = process.platform,
): string {
  if (env['PORTAL_HOME']) return resolve(env['PORTAL_HOME'])
  const user = userHome(env)
  if (user === null)
    throw portalError('home_unusable', { home: 'a home directory', problem: 'HOME is not set, and this user has none' })
  if (platform === 'darwin') return join(user, 'Library', 'Application Support', 'portal')
  // a relative XDG_DATA_HOME is to be ignored (XDG base directory specification)
  const data = env['XDG_DATA_HOME']
  return data?.startsWith('/') ? join(data, 'portal') : join(user, '.local', 'share', 'portal')
}

/** The home directory of who asks; null in containers, often: a number that no name belongs to. */
export function userHome(env: Readonly<Record<string, string | undefined>>): string | null {
  if (env['HOME']) return env['HOME']
  try {
    return homedir()
  } catch {
    return null
  }
}

/** Makes the data directory, private, where it is missing. Throws `home_unusable` with the reason. */
export function makeHome(home: string): void {
  try {
    makeFolder(home)
  } catch (error) {
    throw portalError('home_unusable', { home, problem: whyNot(error as NodeJS.ErrnoException) })
  }
}

// `recursive` never comes back where a folder cannot be made though the one above is there (/proc)
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && statSync(path).isDirectory()) return
    if (code !== 'ENOENT' || existsSync(dirname(path))) throw error
    makeFolder(dirname(path))
    makeFolder(path)
  }
}

const reasons: Readonly<Record<string, string>> = {
  EEXIST: 'it is no directory',
  ENOTDIR: 'it lies under something that is no directory',
  EACCES: 'this user may not make it',
  EPERM: 'this user may not make it',
  EROFS: 'its disk is read-only',
  ENOSPC: 'there is no room left on its disk',
  ENAMETOOLONG: 'its name is too long',
}
const whyNot = ({ code = '', message }: NodeJS.ErrnoException): string =>
  reasons[code] ?? `it cannot be made (${code || message})`

/** Which files of the data directory are whose. */
export const homeFiles = {
  token: (home: string): string => join(home, 'token'),
  serving: (home: string): string => join(home, 'serve.json'),
  lock: (home: string): string => join(home, 'serve.lock'),
  log: (home: string): string => join(home, 'serve.log'),
  database: (home: string): string => join(home, 'portal.db'),
  checkpoints: (home: string): string => join(home, 'checkpoints'),
  workdirs: (home: string): string => join(home, 'workdirs'),
  outputs: (home: string): string => join(home, 'outputs'),
  logs: (home: string): string => join(home, 'logs'),
} as const

/** Who served this data directory last; null: nobody. It may be dead: only an answer to `health` proves that it lives. */
export function readServing(home: string): Serving | null {
  const text = readOrNull(homeFiles.serving(home))
  if (text === null) return null
  try {
    const { url, pid, version, startedAt } = JSON.parse(text) as Partial<Serving>
    if (typeof url === 'string' && Number.isInteger(pid) && typeof version === 'string' && Number.isInteger(startedAt))
      return { url, pid: pid as number, version, startedAt: startedAt as number }
  } catch {
    // said below, as for any other content that no control plane writes
  }
  throw portalError('protocol_unknown', { url: homeFiles.serving(home), problem: 'its content is damaged' })
}

/** The token that people's programs show; null: no control plane ever served here. */
export function readToken(home: string): string | null {
  return readOrNull(homeFiles.token(home))?.trim() || null
}

/** What a client needs to reach the control plane of a data directory. Throws `not_serving`. */
export function reachHome(home: string): { readonly url: string; readonly token: string } {
  const serving = readServing(home)
  const token = readToken(home)
  if (!serving || !token) throw portalError('not_serving', { home })
  return { url: serving.url, token }
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    if (code === 'EACCES' || code === 'EPERM')
      throw portalError('home_unsafe', {
        home: file,
        problem: 'it belongs to another user',
        hint: 'Set PORTAL_HOME to a directory of your own.',
      })
    throw error
  }
}
