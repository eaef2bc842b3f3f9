import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, type Client } from '../../src/contract/client.ts'
import { reachHome, readServing } from '../../src/contract/home.ts'
import { endProcessesNaming } from '../support/leftovers.ts'

const root = join(import.meta.dirname, '../..')

/** The command as people start it. */
export const portal = join(root, 'bin/portal')

/** The built `portal` on a data directory of a benchmark's own: a control plane, an agent, jobs, all of them real. */
export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'portal-bench-'))
  readonly home = join(this.folder, 'home')
  readonly work = join(this.folder, 'project')
  readonly env: NodeJS.ProcessEnv = {
    ...process.env,
    PORTAL_HOME: this.home,
    XDG_CACHE_HOME: join(this.folder, 'cache'),
    NO_COLOR: '1',
  }

  constructor() {
    if (!existsSync(join(root, 'dist/cli.js'))) throw new Error('nothing is built: npm run build')
    mkdirSync(this.work)
  }

  /** Runs to its end. @returns what it wrote to stdout @throws when it ends with another code than 0 */
  async portal(...args: readonly string[]): Promise<string> {
    const child = this.start(portal, args)
    let stdout = ''
    let stderr = ''
    child.stdout?.on('data', (bytes: Buffer) => (stdout += bytes.toString()))
    child.stderr?.on('data', (bytes: Buffer) => (stderr += bytes.toString()))
    const code = await new Promise((resolve) => child.once('close', resolve))
    if (code !== 0) throw new Error(`portal ${args.join(' ')} ended with ${String(code)}: ${stderr}`)
    return stdout
  }

  start(program: string, args: readonly string[]): ChildProcess {
    return spawn(program, args, { cwd: this.work, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
  }

  client(): Client {
    return createClient(reachHome(this.home))
  }

  get controlPlane(): number {
    return readServing(this.home)?.pid ?? 0
  }

  /** The agent of this machine. */
  get agent(): number {
    const file = join(this.home, 'agents/this-machine/agent.pid.json')
    return (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid
  }

  /** Ends everything that was started here, and removes the folder. */
  async clear(): Promise<void> {
    if (existsSync(join(this.home, 'serve.json'))) await this.portal('serve', 'stop').catch(() => {})
    const left = await endProcessesNaming(this.folder)
    for (const { pid, command } of left) console.error(`process ${pid} is left: ${command}`)
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 })
  }
}
