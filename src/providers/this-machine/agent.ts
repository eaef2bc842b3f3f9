import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { minute, second } from '../../core/time/index.ts'
import { messageOf, openLog, readIfThere, tail, writePrivate } from '../files.ts'
import { ProviderError, type Bootstrap } from '../port.ts'
import { isAlive, kill, parseIdentity, type ProcessIdentity } from '../processes.ts'
import { alreadyHeld, holdModule } from './hold.ts'

/**
 * The one agent of this host. It belongs to the data directory, not to the control plane that started it: it goes on when
 * that ends, and the next control plane finds it by what it wrote down about itself.
 */
export class HostAgent {
  readonly log: string
  readonly #bootstrap: string
  readonly #holder: string
  readonly #lock: string
  readonly #hold: string
  readonly #entry: string
  readonly #folder: string
  #starting: Promise<void> | null = null
  /** how the last agent that this process started came to its end */
  #ended: string | null = null
  #watch: NodeJS.Timeout | null = null
  #closed = false

  constructor(folder: string, entry: string) {
    this.log = join(folder, 'agent.log')
    this.#bootstrap = join(folder, 'bootstrap.json')
    this.#holder = join(folder, 'agent.pid.json')
    this.#lock = join(folder, 'agent.lock')
    this.#hold = join(folder, 'hold.mjs')
    this.#entry = entry
    this.#folder = folder
  }

  async isRunning(): Promise<boolean> {
    return isAlive(await this.#running())
  }

  /** Why it does not run, as far as this process knows, with the end of its log. */
  async whyNot(): Promise<string> {
    return this.#words(this.#ended ?? 'it was not started, or ended')
  }

  /**
   * Returns once the agent runs with this bootstrap. As often as one likes, from as many processes as one likes. One that looks for
   * its control plane elsewhere is started anew: jobs do not notice, since their keepers hold them.
   */
  async ensure(bootstrap: Bootstrap): Promise<void> {
    const written = await readIfThere(this.#bootstrap)
    if (written === null || !leadsTo(written, bootstrap)) {
      await writePrivate(this.#bootstrap, JSON.stringify(bootstrap))
      const running = await this.#running()
      if (running !== null) await this.#end(running, 'SIGKILL')
    }
    await this.#start()
    this.#watchOver()
  }

  /**
   * Looks after an agent that another control plane started and nobody stopped: jobs of this host may need it, though it
   * died while no control plane looked.
   */
  async adopt(): Promise<void> {
    if ((await this.#running()) !== null && existsSync(this.#bootstrap)) this.#watchOver(0)
  }

  /** Ends the agent, and does not start it again before the next `ensure`. */
  async stop(): Promise<void> {
    this.#unwatch()
    await this.#starting?.catch(() => {})
    const running = await this.#running()
    await rm(this.#holder, { force: true })
    if (running !== null) await this.#end(running, 'SIGTERM')
  }

  async #end(agent: ProcessIdentity, signal: NodeJS.Signals): Promise<void> {
    kill(agent, signal)
    const patience = Date.now() + 5 * second
    while (isAlive(agent)) {
      if (Date.now() > patience) kill(agent)
      await sleep(10)
    }
  }

  /** Stops looking after the agent, which goes on. */
  close(): void {
    this.#closed = true
    this.#unwatch()
  }

  async #running(): Promise<ProcessIdentity | null> {
    const text = await readIfThere(this.#holder)
    return text === null ? null : parseIdentity(JSON.parse(text))
  }

  /** Calls that overlap wait for the same start. */
  #start(): Promise<void> {
    this.#starting ??= this.#startOnce().finally(() => {
      this.#starting = null
    })
    return this.#starting
  }

  async #startOnce(): Promise<void> {
    if (await this.isRunning()) return
    if (!existsSync(this.#entry))
      throw new ProviderError('unreachable', `there is no agent at ${this.#entry}: the installation is incomplete`)
    await writePrivate(this.#hold, holdModule({ lock: this.#lock, holder: this.#holder, bootstrap: this.#bootstrap }))
    const patience = Date.now() + startPatience
    let launch = this.#launch()
    while (!(await this.isRunning())) {
      if (launch.failed !== null) throw await this.#failure(launch.failed)
      if (launch.exit !== null) {
        // another start was first: its agent is about to write down who it is, or has just ended
        if (launch.exit !== alreadyHeld) throw await this.#failure(`it ended at once with ${launch.exit}`)
        launch = this.#launch()
      }
      if (Date.now() > patience) throw await this.#failure(`it did not start within ${startPatience / second} s`)
      await sleep(20)
    }
  }

  /** Its own session, its output in a file: nothing of this process reaches it, and it needs nothing of this process. */
  #launch(): Launch {
    const output = openLog(this.log)
    const launch: Launch = { exit: null, failed: null }
    let child: ChildProcess
    try {
      child = spawn(process.execPath, ['--import', pathToFileURL(this.#hold).href, this.#entry, this.#bootstrap], {
        cwd: this.#folder,
        detached: true,
        stdio: ['ignore', output, output],
        env: agentEnvironment(process.env),
      })
    } finally {
      closeSync(output)
    }
    child.unref()
    child.on('error', (error) => (launch.failed = messageOf(error)))
    child.on('exit', (code, signal) => {
      launch.exit = code ?? signal ?? 'nothing'
      if (code !== alreadyHeld) this.#ended = `it ended with ${launch.exit}`
      // it found that nothing is left for it to do
      if (code === 0) this.#unwatch()
    })
    return launch
  }

  async #failure(what: string): Promise<ProviderError> {
    return new ProviderError(
      'unreachable',
      `the agent on this machine could not be started: ${await this.#words(what)}`,
    )
  }

  async #words(what: string): Promise<string> {
    const said = await tail(this.log, 800)
    return `${what}; its log, ${this.log}, ${said === '' ? 'is empty' : `ends in:\n${said}`}`
  }

  /** Restarts an agent that died, at growing intervals while it keeps dying. */
  #watchOver(wait = watchEvery): void {
    this.#unwatch()
    if (this.#closed) return
    this.#watch = setTimeout(() => void this.#look(wait), wait)
    this.#watch.unref()
  }

  async #look(wait: number): Promise<void> {
    let next = watchEvery
    try {
      if (!(await this.isRunning())) await this.#start()
    } catch {
      // said in the agent's log, and by the next `start`
      next = Math.min(Math.max(wait, watchEvery) * 2, minute)
    }
    // null: told to stop looking meanwhile
    if (this.#watch !== null) this.#watchOver(next)
  }

  #unwatch(): void {
    if (this.#watch !== null) clearTimeout(this.#watch)
    this.#watch = null
  }
}

interface Launch {
  exit: number | string | null
  failed: string | null
}

const startPatience = 20 * second
const watchEvery = second

/** Jobs on a person's own machine find what that person's programs find; what was set for Portal or its launcher stays out. */
function agentEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const launcher = /^(PORTAL_|npm_|VITEST|NODE_OPTIONS$|NODE_CHANNEL_|NODE_UNIQUE_ID$)/
  return Object.fromEntries(Object.entries(env).filter(([name]) => !launcher.test(name)))
}

/** Whether a bootstrap that was written down leads an agent to the same control plane; how long it may look for it does not matter. */
function leadsTo(written: string, { agentId, url, token, checkpoints }: Bootstrap): boolean {
  try {
    const { agentId: id, url: where, token: shown, checkpoints: kept } = JSON.parse(written) as Bootstrap
    return id === agentId && where === url && shown === token && kept.directory === checkpoints.directory
  } catch {
    return false
  }
}
