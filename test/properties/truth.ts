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
  readonly #open = new Map<string, Execution>()
  readonly #reached = new Map<string, number>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  wrong(what: string): void {
    if (this.violations.length < 20) this.violations.push(what)
  }

  /** An attempt's process runs on, or for the first time. */
  began(job: string, attempt: string, progress: number): void {
    const others = this.executing(job).filter((one) => one !== attempt)
    if (others.length > 0) this.wrong(`two attempts execute: ${[...others, attempt].join(' and ')}`)
    const before = this.#reached.get(attempt)
    if (before !== undefined && progress < before)
      this.wrong(`attempt ${attempt} ran on at ${progress}, though it had reached ${before}`)
    if (this.finished.has(job))
      this.wrong(`attempt ${attempt} runs though the work was finished by ${this.finished.get(job)}`)
    const execution: Execution = { job, attempt, from: this.#now(), until: null, began: progress }
    this.executions.push(execution)
    this.#open.set(attempt, execution)
  }

  stopped(attempt: string, progress: number): void {
    const execution = this.#open.get(attempt)
    if (!execution) return
    execution.until = this.#now()
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
