import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, type Client } from '../../src/contract/client.ts'
import { PortalError } from '../../src/contract/errors.ts'
import { homeFiles, readServing, readToken } from '../../src/contract/home.ts'
import type { JobRequest } from '../../src/contract/schemas.ts'
import { endAllHere } from '../../src/providers/index.ts'
import { descendants, gone, killHard, processesNaming, type Found } from '../support/processes.ts'
import { isAlive } from '../../src/providers/processes.ts'
import { Person } from '../support/portal.ts'
import { JobWatch } from '../support/watch.ts'

export const root = resolve(import.meta.dirname, '../..')

/** What was built is tested where `npm test` built it, the sources otherwise. */
const built = process.env['PORTAL_TEST_BUILT'] !== undefined
export const programs = built
  ? {
      control: join(root, 'dist/control.js'),
      agent: join(root, 'dist/agent.js'),
      practice: join(root, 'dist/practice.js'),
    }
  : {
      control: join(root, 'src/control/main.ts'),
      agent: join(root, 'src/agent/main.ts'),
      practice: join(root, 'src/providers/practice/cloud/main.ts'),
    }

/** Where the jobs of the tests are. */
export const jobs = join(root, 'test/support/jobs')
export const examples = join(root, 'examples')

/** This machine's Python itself, not a shim that looks for one at each start; null: none that will do. */
export const python = ((): string | null => {
  const asked = spawnSync('python3', ['-c', 'import sys; print(sys.executable if sys.version_info >= (3, 9) else "")'])
  return asked.status === 0 ? asked.stdout.toString().trim() || null : null
})()
export const whyNoPython = 'no python3 of 3.9 or newer here: apt-get install python3'

/** A party that can be killed. Those of a job are its attempt's, by token. */
export type Party = 'control plane' | 'practice cloud' | 'agent' | 'keeper' | 'job' | 'SDK'

type Asked = Pick<JobRequest, 'command'> & Partial<JobRequest>

/**
 * A whole Portal of a test's own: a data directory, a control plane as a process, agents, machines, jobs, and the command
 * line on it. What it started is gone when it is closed, or the test fails.
 */
export class Installation {
  readonly person = new Person()
  readonly folder = this.person.folder
  readonly home = this.person.home
  /** where jobs write what no machine of theirs keeps */
  readonly outside = join(this.folder, 'outside')
  readonly #watches: JobWatch[] = []
  #control: ChildProcess | null = null
  #client: Client | null = null
  #undo: () => void = () => {}

  private constructor() {
    mkdirSync(this.outside)
  }

  /** @param prepare what is done with the data directory before the first control plane starts; it answers how to undo it */
  static async open(prepare: (home: string) => () => void = () => () => {}): Promise<Installation> {
    const installation = new Installation()
    try {
      installation.#undo = prepare(installation.home)
      await installation.serve()
    } catch (error) {
      installation.#sweep()
      throw error
    }
    return installation
  }

  /** An installation for as long as `use` takes. What went wrong in there is told before what was left over because of it. */
  static async with(use: (portal: Installation) => Promise<void>): Promise<void> {
    const portal = await Installation.open()
    const failed = await use(portal).then(
      () => null,
      (error: unknown) => ({ error }),
    )
    await portal.close().catch((error: unknown) => {
      if (failed === null) throw error
    })
    if (failed !== null) throw failed.error
  }

  get client(): Client {
    if (!this.#client) throw new Error('no control plane was started')
    return this.#client
  }

  /** Starts the control plane, as after a crash, and returns once it answers. */
  async serve(): Promise<void> {
    const child = this.serveOnce()
    this.#control = child
    const log = homeFiles.log(this.home)
    await new Promise<void>((settle, reject) => {
      let said = ''
      const keep = (bytes: Buffer) => {
        try {
          if (existsSync(this.home)) appendFileSync(log, bytes)
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        }
      }
      child.stdout?.on('data', (bytes: Buffer) => {
        keep(bytes)
        if (said.includes('the control plane serves')) return
        said += bytes.toString()
        if (said.includes('the control plane serves')) settle()
      })
      child.stderr?.on('data', (bytes: Buffer) => void (said += bytes.toString()))
      child.once('exit', (code) => reject(new Error(`the control plane ended with ${code}: ${said}`)))
    })
    const serving = readServing(this.home)
    if (!serving || serving.pid !== child.pid) throw new Error(`serve.json does not name process ${child.pid}`)
    this.#client = createClient({ url: serving.url, token: readToken(this.home) })
  }

  /** Another control plane on the same data, which nobody waits for. */
  serveOnce(): ChildProcess {
    return spawn(process.execPath, [programs.control], {
      cwd: this.folder,
      env: { PATH: process.env['PATH'], HOME: this.folder, PORTAL_HOME: this.home },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  get isServed(): boolean {
    return this.#control !== null && this.#control.exitCode === null && this.#control.signalCode === null
  }

  /** Runs a job and follows its events. `TRACE` names a file of its own outside of every machine. */
  async run({ env, ...asked }: Asked): Promise<JobWatch> {
    const job = await this.client.createJob({ body: { ...asked, env: { TRACE: this.trace(asked.name), ...env } } })
    const watch = new JobWatch(() => this.client, job)
    this.#watches.push(watch)
    return watch
  }

  trace(name = 'trace'): string {
    return join(this.outside, name)
  }

  /** What the job wrote outside of every machine: a line each time. */
  traced(name = 'trace'): readonly string[] {
    const file = this.trace(name)
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
  }

  /** The processes that are a party now. Of an attempt: of the job's current one, or of `token`. */
  async find(party: Party, job?: JobWatch, token?: number): Promise<readonly Found[]> {
    const here = processesNaming(this.folder)
    const isNode = ({ args }: Found) => args[0] === process.execPath
    switch (party) {
      case 'control plane':
        return here.filter(({ args }) => args.includes(programs.control))
      case 'practice cloud':
        return here.filter((one) => isNode(one) && one.args.includes(programs.practice))
    }
    if (!job) throw new Error(`whose ${party}?`)
    const attempt = `${job.id}.${token ?? (await job.view()).attempt}`
    const folder = (one: Found) => one.args.find((arg) => arg.endsWith(`/attempts/${attempt}`))
    switch (party) {
      case 'agent': {
        const machine = await this.#machineOf(attempt)
        return here.filter(
          (one) =>
            isNode(one) && one.args.includes(programs.agent) && one.args.at(-1) === join(machine, 'bootstrap.json'),
        )
      }
      case 'keeper':
        return here.filter((one) => one.args[2] === 'keep' && folder(one))
      case 'job': {
        const first = here.find(
          (one) =>
            one.args.includes('first') &&
            !one.args.includes('keep') &&
            folder(one) &&
            !one.args[0]?.endsWith('unshare'),
        )
        const inside = first ? descendants(first.pid) : []
        return here.filter(({ pid }) => inside.includes(pid))
      }
      case 'SDK': {
        const all = await this.find('job', job, token)
        return all.filter(({ args }) => args[0] === process.execPath || args[0] === python)
      }
    }
  }

  /** `kill -9` of a party; returns once it is gone, and who it was. */
  async kill(party: Party, job?: JobWatch, token?: number): Promise<readonly Found[]> {
    const found = await this.find(party, job, token)
    await killHard(found)
    return found
  }

  /** Folder of the machine that an attempt is on. */
  async #machineOf(attempt: string): Promise<string> {
    const machines = join(this.home, 'practice/machines')
    const rented = existsSync(machines) ? readdirSync(machines) : []
    const machine = rented.find((name) => existsSync(join(machines, name, 'attempts', attempt)))
    return machine ? join(machines, machine) : join(this.home, 'agents/this-machine')
  }

  /**
   * Ends what still runs, then looks that nothing is left over: no job, no keeper, no folder of a job, no machine, and at
   * last no process at all that names this folder.
   */
  async close(): Promise<void> {
    try {
      if (!this.isServed) await this.serve()
      for (const { id, state } of (await this.client.jobs()).jobs)
        if (state !== 'suspended')
          await this.client.stop({ params: { ref: id }, body: { now: true } }).catch(unlessEnded)
      await until(() => this.#leftOver(), 'left over')
      for (const watch of this.#watches) await watch.close()
      this.#control?.kill('SIGTERM')
      await gone(processesNaming(this.folder).filter(({ args }) => args.includes(programs.control)))
      await endAllHere({ home: this.home, programs })
      await until(() => Promise.resolve(processesNaming(this.folder).map(told)), 'still running')
    } finally {
      for (const watch of this.#watches) await watch.close()
      this.#sweep()
    }
  }

  async #leftOver(): Promise<readonly string[]> {
    const { machines } = await this.client.practice()
    const attempts = join(this.home, 'agents/this-machine/attempts')
    return [
      ...machines
        .filter(({ state }) => state !== 'ended')
        .map(({ id, state, attempt }) => `machine ${id} ${state} for ${attempt}`),
      ...(existsSync(attempts) ? readdirSync(attempts).map((name) => `folder ${name}`) : []),
      ...processesNaming(this.folder)
        .filter(
          ({ args }) => args[2] === 'keep' || args.some((arg) => arg.startsWith(this.outside) || arg.startsWith(jobs)),
        )
        .map(told),
    ]
  }

  /** Whatever became of the test: nothing of it stays. */
  #sweep(): void {
    for (const one of processesNaming(this.folder)) {
      if (isAlive(one)) {
        try {
          process.kill(one.pid, 'SIGKILL')
        } catch {
          // it has gone meanwhile
        }
      }
    }
    this.#undo()
    this.person.remove()
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

const unlessEnded = (error: unknown): void => {
  if (!(error instanceof PortalError) || error.code !== 'job_ended') throw error
}

const told = ({ pid, args }: Found): string => `process ${pid}: ${args.join(' ').slice(0, 300)}`

/** Looks until nothing is found any more. @throws with what is still found after 30 s */
async function until(look: () => Promise<readonly string[]>, what: string): Promise<void> {
  const end = performance.now() + 30_000
  for (;;) {
    const found = await look()
    if (found.length === 0) return
    if (performance.now() > end) throw new Error(`${what}:\n${found.join('\n')}`)
    await sleep(20)
  }
}
