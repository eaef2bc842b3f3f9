import type { VirtualClock } from './clock.ts'

/** One stretch of time in which a job's process ran past `job.state()`, as the process itself lived it. */
export interface Execution {
  readonly job: string
  readonly attempt: string
  readonly from: number
  until: number | null
  /** how far the work was when it began */
  readonly began: number
}

/**
 * What is true in the modelled world, written down by the modelled processes and machines themselves and never by what an agent
 * reports. Whatever must not be is put down the moment it happens.
 */
export class Truth {
  readonly violations: string[] = []
  readonly executions: Execution[] = []
  /** how far the work was that a checkpoint holds, by `JOB/SLOT` */
  readonly saved = new Map<string, { readonly attempt: string; readonly progress: number }>()
  /** jobs whose work was done to its end, and by which attempt */
  readonly finished = new Map<string, string>()
  /** attempts on machines that were paused with their clocks: their leases cannot be reckoned, so no lease alone may give them away */
  readonly paused = new Set<string>()
  /** attempts that have their state back */
  readonly restored = new Set<string>()
  /** told when an attempt begins to execute */
  beginning: (attempt: string) => void = () => {}
  readonly #open = new Map<string, Execution>()
  readonly #reached = new Map<string, number>()
  /** attempts whose machine was set back to an earlier state: what runs there is beyond every promise, but must not count */
  readonly haunted = new Set<string>()
  /** those of them whose processes had ended before, and that no lease can be reckoned for any more */
  readonly revived = new Set<string>()
  readonly #clock: VirtualClock

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  wrong(what: string): void {
    if (this.violations.length < 20) this.violations.push(what)
  }

  /** An attempt's process runs on, or for the first time. */
  began(job: string, attempt: string, progress: number, afterPause = false): void {
    const look = () => {
      if (!this.isExecuting(attempt)) return
      this.beginning(attempt)
      const both = this.executing(job).filter((one) => !this.haunted.has(one))
      if (both.length > 1 && both.includes(attempt)) this.wrong(`two attempts execute: ${both.join(' and ')}`)
    }
    const before = this.#reached.get(attempt)
    if (before !== undefined && progress < before && !this.haunted.has(attempt))
      this.wrong(`attempt ${attempt} ran on at ${progress}, though it had reached ${before}`)
    if (this.finished.has(job) && !afterPause && !this.haunted.has(attempt))
      this.wrong(`attempt ${attempt} runs though the work was finished by ${this.finished.get(job)}`)
    const execution: Execution = { job, attempt, from: this.#clock.now(), until: null, began: progress }
    this.executions.push(execution)
    this.#open.set(attempt, execution)
    // J-SAFE-2: after a pause of a whole machine two seconds are what it takes to notice
    if (afterPause) this.#clock.after(2000, look)
    else look()
  }

  stopped(attempt: string, progress: number): void {
    const execution = this.#open.get(attempt)
    if (!execution) return
    execution.until = this.#clock.now()
    this.#reached.set(attempt, progress)
    this.#open.delete(attempt)
  }

  executing(job: string): readonly string[] {
    return [...this.#open.values()].filter((one) => one.job === job).map(({ attempt }) => attempt)
  }

  isExecuting(attempt: string): boolean {
    return this.#open.has(attempt)
  }

  /** How far an attempt's work was when it last stood still. */
  reached(attempt: string): number | null {
    return this.#reached.get(attempt) ?? null
  }
}
