import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pc from 'picocolors'
import { endProcessesNaming } from '../../test/support/leftovers.ts'

const root = join(import.meta.dirname, '../..')

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end. */
export const ran = (program: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<Ran> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString()))
    child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()))
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout, stderr }))
  })

/** What of a job the demo looks at, from `portal show --json`. */
export interface Shown {
  readonly state: string
  readonly offer: string | null
  readonly attempt: number | null
  readonly progress: { readonly done: number | null; readonly total: number | null; readonly turns: number } | null
  readonly spent: { readonly amount: string; readonly currency: string }
  readonly checkpoint: { readonly bytes: number } | null
  readonly why: { readonly sentence: string } | null
}

/** Whatever does not go as it should: the demo ends, saying so. */
export class DemoError extends Error {}

/** A data directory of the demo's own, and the command line on it, shown as one would type it. */
export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'portal-demo-'))
  readonly home = join(this.folder, 'home')
  readonly work = join(this.folder, 'project')
  readonly env: NodeJS.ProcessEnv = { ...process.env, PORTAL_HOME: this.home, NO_COLOR: '1' }

  constructor(files: readonly string[]) {
    mkdirSync(this.work)
    for (const file of files) cpSync(join(root, 'examples', file), join(this.work, file))
  }

  portal(args: readonly string[]): Promise<Ran> {
    return ran(join(root, 'bin/portal'), args, this.work, this.env)
  }

  /**
   * Shows the command and what it printed, lines that are not `wanted` only counted.
   * @throws DemoError when it ends otherwise than expected
   */
  async type(args: readonly string[], expected = 0, wanted: (line: string) => boolean = () => true): Promise<Ran> {
    say(pc.bold(`$ portal ${args.join(' ')}`))
    const result = await this.portal(args)
    const lines = `${result.stdout}${result.stderr}`.split('\n').filter((line) => line !== '')
    const shown = lines.filter(wanted)
    for (const line of shown) say(pc.dim(`  ${line}`))
    if (shown.length < lines.length) say(pc.dim(`  … and ${lines.length - shown.length} lines that are left out here`))
    if (result.code !== expected)
      throw new DemoError(`portal ${args.join(' ')} ended with ${result.code}, not ${expected}`)
    return result
  }

  async show(job: string): Promise<Shown> {
    const { code, stdout, stderr } = await this.portal(['show', job, '--json'])
    if (code !== 0) throw new DemoError(stderr.trim())
    return JSON.parse(stdout) as Shown
  }

  /** Looks at a job until it is as wanted. @throws DemoError when it ended, or is not so within `limit_s` */
  async until(job: string, what: string, wanted: (shown: Shown) => boolean, limit_s = 30): Promise<Shown> {
    const end = performance.now() + limit_s * 1000
    for (;;) {
      const shown = await this.show(job)
      if (wanted(shown)) return shown
      if (['failed', 'stopped'].includes(shown.state) || performance.now() > end) {
        const { stdout } = await this.portal(['explain', job])
        throw new DemoError(`${job} is ${shown.state}, not ${what}\n${stdout}`)
      }
      await sleep(100)
    }
  }

  /** Ends everything that this demo started and removes its folder; names what could not be ended. */
  async clear(): Promise<readonly string[]> {
    const { stdout } = await this.portal(['ps', '--json'])
    const running = (JSON.parse(stdout || '{"jobs":[]}') as { jobs: readonly { name: string }[] }).jobs
    for (const { name } of running) await this.portal(['stop', '--now', name])
    await this.portal(['serve', 'stop'])
    // the practice cloud and this machine's agent outlive the control plane, as they must: they are ended by hand
    const processes = await endProcessesNaming(this.folder)
    const left = processes.map(({ pid, command }) => `process ${pid}: ${command}`)
    rmSync(this.folder, { recursive: true, force: true })
    return existsSync(this.folder) ? [...left, `folder ${this.folder}`] : left
  }
}

export const say = (text = ''): void => void process.stdout.write(text === '' ? '\n' : `  ${text}\n`)

export const title = (number: number, text: string): void => {
  say()
  process.stdout.write(`${pc.cyan(pc.bold(`${number}`))} ${pc.bold(text)}\n`)
}
