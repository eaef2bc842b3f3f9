import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { endProcessesNaming } from './leftovers.ts'
import { version } from '../../src/cli/version.ts'

const built = process.env['PORTAL_TEST_BUILT'] !== undefined
const program = resolve(import.meta.dirname, built ? '../../dist/cli.js' : '../../src/cli/main.ts')

/** For `expect.poll`: a busy machine starts a command in seconds. */
export const patient = { timeout: 30_000, interval: 50 } as const

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Started {
  readonly child: ChildProcess
  readonly done: Promise<Ran>
  /** what it has written so far */
  readonly output: { stdout: string; stderr: string }
  /** Waits until stderr or stdout contains the text. */
  until(text: string): Promise<void>
}

/** A data directory and a working directory of a test's own, and the command line on them. */
export class Person {
  readonly folder = mkdtempSync(join(tmpdir(), 'portal-cli-'))
  readonly home = join(this.folder, 'home')
  readonly work = join(this.folder, 'work')

  readonly #children = new Set<ChildProcess>()

  constructor() {
    mkdirSync(this.home, { mode: 0o700 })
    mkdirSync(this.work)
  }

  /** Makes the command line find a control plane that a test serves itself. */
  served(url: string, token: string): void {
    writeFileSync(
      join(this.home, 'serve.json'),
      JSON.stringify({ url, pid: process.pid, version, startedAt: Date.now() }),
    )
    writeFileSync(join(this.home, 'token'), `${token}\n`, { mode: 0o600 })
  }

  start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
    const child = spawn(process.execPath, [program, ...args], {
      cwd: this.work,
      env: { PATH: process.env['PATH'], HOME: this.folder, PORTAL_HOME: this.home, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#children.add(child)
    child.once('exit', () => this.#children.delete(child))
    const output = { stdout: '', stderr: '' }
    const waiting = new Set<() => void>()
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (bytes: Buffer) => {
        output[name] += bytes.toString()
        for (const look of waiting) look()
      })
    const done = new Promise<Ran>((settle, reject) => {
      child.once('error', reject)
      child.once('close', (code) => {
        settle({ code, ...output })
        for (const look of waiting) look()
      })
    })
    const until = (text: string) =>
      new Promise<void>((settle, reject) => {
        const look = () => {
          if (`${output.stdout}${output.stderr}`.includes(text)) settle()
          else if (child.exitCode !== null) reject(new Error(`ended before ${JSON.stringify(text)}: ${output.stderr}`))
          else return
          waiting.delete(look)
        }
        waiting.add(look)
        look()
      })
    return { child, done, output, until }
  }

  run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
    return this.start(args, env).done
  }

  /** The process of the control plane that serves the data directory; null: none is noted. */
  servingPid(): number | null {
    try {
      return (JSON.parse(readFileSync(join(this.home, 'serve.json'), 'utf8')) as { pid: number }).pid
    } catch {
      return null
    }
  }

  /** Ends the jobs, the control plane, and what outlives it (this machine's agent, the practice cloud); then removes all. */
  async end(): Promise<void> {
    const { jobs } = JSON.parse((await this.run(['ps', '--json'])).stdout || '{"jobs":[]}') as {
      jobs: { name: string }[]
    }
    for (const { name } of jobs) await this.run(['stop', '--now', name])
    await this.run(['serve', 'stop'])
    await endProcessesNaming(this.folder)
    this.remove()
  }

  /** Ends what a failed test left running, and removes both directories. */
  remove(): void {
    for (const child of this.#children) child.kill('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }
}
