import { createHash } from 'node:crypto'
import { accessSync, closeSync, constants, existsSync, openSync, readSync, statSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { JobStart } from '../contract/agent.ts'

/** Where the SDKs that come with this program are: `sdk/` beside its `package.json`; null: it came without. */
export const findSdk = (from: string): string | null => {
  for (let folder = from; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json')) && existsSync(join(folder, 'sdk'))) return join(folder, 'sdk')
    if (folder === dirname(folder)) return null
  }
}

/** One seed for all attempts of a job, so that sets keep their order where it is carried over (K-STRICT-6). 0 would turn hashing's seed off. */
export const hashSeed = (jobId: string): string =>
  String((createHash('sha256').update(jobId).digest().readUInt32BE(0) % 4_294_967_294) + 1)

export interface JobPlace {
  readonly token: number
  readonly socket: string
  readonly flag: string
  readonly sdk: string | null
}

/** The environment of a job's process: the machine's, the job's own over it, and what its SDK needs to find the agent. */
export const jobEnvironment = (
  machine: Readonly<Record<string, string | undefined>>,
  { jobId, jobName, env, checkpoint }: Pick<JobStart, 'jobId' | 'jobName' | 'env' | 'checkpoint'>,
  { token, socket, flag, sdk }: JobPlace,
): Record<string, string> => {
  const joined: Record<string, string> = {}
  for (const [name, value] of Object.entries(machine)) if (value !== undefined) joined[name] = value
  Object.assign(joined, env)
  for (const name of ['PORTAL_SOCKET', 'PORTAL_FLAG', 'PORTAL_JOB', 'PORTAL_ATTEMPT']) delete joined[name]
  // what a job prints is read as it grows: a file would make Python hold it back
  joined['PYTHONUNBUFFERED'] ??= '1'
  joined['PYTHONHASHSEED'] ??= hashSeed(jobId)
  if (checkpoint === 'none') return joined
  joined['PORTAL_SOCKET'] = socket
  joined['PORTAL_FLAG'] = flag
  joined['PORTAL_JOB'] = jobName
  joined['PORTAL_ATTEMPT'] = String(token)
  if (sdk === null) return joined
  const path = joined['PYTHONPATH']
  joined['PYTHONPATH'] = join(sdk, 'python') + (path ? `${delimiter}${path}` : '')
  const register = join(sdk, 'node', 'register.mjs')
  if (existsSync(register)) {
    const options = joined['NODE_OPTIONS']
    joined['NODE_OPTIONS'] = `--import=${pathToFileURL(register).href}${options ? ` ${options}` : ''}`
  }
  return joined
}

/**
 * Why a command cannot be started, in one sentence, as far as that can be seen beforehand: it is not there, is no program,
 * its interpreter is missing, or the working directory is. Null: nothing is known against it.
 */
export const whyNotStart = (
  command: readonly string[],
  workdir: string,
  env: Readonly<Record<string, string>>,
): string | null => {
  const [program = ''] = command
  if (!isDirectory(workdir)) return `the working directory ${workdir} is not there`
  const found = find(program, workdir, env['PATH'] ?? '')
  if (found.is === 'absent')
    return program.includes('/')
      ? `the command ${program} was not found in the working directory`
      : `the command ${program} was not found: no folder of PATH has it`
  if (found.is === 'denied') return `the command ${program} cannot be executed: ${found.path} is not an executable file`
  const interpreter = interpreterOf(found.path)
  if (interpreter !== null && !isExecutable(interpreter))
    return `the command ${program} needs the interpreter ${interpreter}, which is not there`
  return null
}

type Found = { readonly is: 'absent' } | { readonly is: 'denied' | 'there'; readonly path: string }

const find = (program: string, workdir: string, path: string): Found => {
  if (program === '') return { is: 'absent' }
  const candidates = program.includes('/')
    ? [isAbsolute(program) ? program : resolve(workdir, program)]
    : path.split(delimiter).map((folder) => resolve(workdir, folder || '.', program))
  const executable = candidates.find(isExecutable)
  if (executable) return { is: 'there', path: executable }
  const there = candidates.find((candidate) => existsSync(candidate))
  return there ? { is: 'denied', path: there } : { is: 'absent' }
}

const isDirectory = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** What a script's first line asks for; null: no script, or one that cannot be read. */
const interpreterOf = (path: string): string | null => {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch {
    return null
  }
  try {
    const bytes = Buffer.alloc(256)
    const line = bytes.toString('utf8', 0, readSync(file, bytes, 0, 256, 0)).split('\n')[0] ?? ''
    return /^#!\s*(\S+)/.exec(line)?.[1] ?? null
  } catch {
    return null
  } finally {
    closeSync(file)
  }
}
