import type { MachineClock } from './machine-clock.ts'
import type { Truth } from './truth.ts'

/** How a process came to its end, as its keeper puts it down. */
export type ProcessEnd =
  | { readonly is: 'exit'; readonly code: number }
  | { readonly is: 'signal'; readonly number: number }
  | { readonly is: 'deadline' | 'begun' }

/**
 * A job's process with its keeper: a number that grows by one a second while it executes. It blocks in `job.state()` until it is
 * let past, stands still at a safe point and while it is frozen, and is ended at the deadline whatever becomes of its agent.
 */
export class ModelProcess {
  readonly attempt: string
  readonly #job: string
  readonly #clock: MachineClock
  readonly #truth: Truth
  readonly #goal: number
  readonly #ended: () => void
  #reached: number
  #since: number | null = null
  #past = false
  #restored: boolean
  #there = false
  #atSafePoint = false
  #frozen = false
  #paused = false
  #wokeAt = -Infinity
  #end: ProcessEnd | null = null
  #goalTimer: { cancel(): void } | null = null
  #deadlineTimer: { cancel(): void } | null = null

  constructor(options: {
    readonly attempt: string
    readonly job: string
    readonly clock: MachineClock
    readonly truth: Truth
    readonly goal: number
    readonly restores: boolean
    readonly deadline: number
    readonly ended: () => void
  }) {
    this.attempt = options.attempt
    this.#job = options.job
    this.#clock = options.clock
    this.#truth = options.truth
    this.#goal = options.goal
    this.#ended = options.ended
    this.#reached = 0
    this.#restored = !options.restores
    this.deadline(options.deadline)
  }

  get isOver(): boolean {
    return this.#end !== null
  }

  get end(): ProcessEnd | null {
    return this.#end
  }

  /** Its SDK is connected to whichever agent is there. */
  get isThere(): boolean {
    return this.#there && this.#end === null
  }

  get progress(): number {
    return this.#reached + (this.#since === null ? 0 : Math.floor((this.#clock.now() - this.#since) / 1000))
  }

  /** Its SDK has come, and has its state back where there was one to restore. */
  comes(progress: number): void {
    if (this.#end) return
    this.#there = true
    if (!this.#restored) {
      this.#reached = progress
      this.#restored = true
      this.#truth.restored.add(this.attempt)
    }
    this.#look()
  }

  /** Past `job.state()`, as soon as it is restored. */
  letPast(): void {
    this.#past = true
    this.#look()
  }

  reachSafePoint(): void {
    this.#atSafePoint = true
    this.#look()
  }

  leaveSafePoint(): void {
    this.#atSafePoint = false
    this.#look()
  }

  freeze(): void {
    this.#frozen = true
    this.#look()
  }

  thaw(): void {
    this.#frozen = false
    this.#look()
  }

  /** With its machine. */
  pause(on: boolean): void {
    this.#paused = on
    if (!on) this.#wokeAt = this.#clock.now()
    this.#look()
  }

  /** The machine was set back to how it was before: the work done since is not there any more. */
  setBack(progress: number): void {
    this.#stand()
    this.#end = null
    this.#atSafePoint = false
    this.#frozen = false
    this.#past = true
    this.#restored = true
    this.#reached = progress
    this.#look()
  }

  /** The keeper's, rewritten in place by the agent; it outlives the agent. */
  deadline(at: number): void {
    this.#deadlineTimer?.cancel()
    if (this.#end || at === Infinity) return
    this.#deadlineTimer = this.#clock.after(at - this.#clock.now(), () => this.over({ is: 'deadline' }))
  }

  over(how: ProcessEnd): void {
    if (this.#end) return
    this.#stand()
    this.#end = how
    this.#deadlineTimer?.cancel()
    this.#ended()
  }

  #look(): void {
    const executes =
      this.#past && this.#restored && !this.#atSafePoint && !this.#frozen && !this.#paused && this.#end === null
    if (executes === (this.#since !== null)) return
    if (!executes) return this.#stand()
    this.#since = this.#clock.now()
    this.#truth.began(this.#job, this.attempt, this.#reached, this.#clock.now() < this.#wokeAt + 2000)
    this.#goalTimer = this.#clock.after((this.#goal - this.#reached) * 1000, () => {
      this.#truth.finished.set(this.#job, this.attempt)
      this.over({ is: 'exit', code: 0 })
    })
  }

  #stand(): void {
    this.#goalTimer?.cancel()
    if (this.#since === null) return
    this.#reached = this.progress
    this.#since = null
    this.#truth.stopped(this.attempt, this.#reached)
  }
}
