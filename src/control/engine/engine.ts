import { orderFor } from '../../core/jobs/orders.ts'
import { isEnded } from '../../core/jobs/model.ts'
import { nextStep, type Step } from '../../core/jobs/steps/index.ts'
import type { World } from '../../core/jobs/world.ts'
import { never, type Instant } from '../../core/time/index.ts'
import { jobIdOf } from '../logs.ts'
import { Checks, dueAsleep } from './checks.ts'
import { commit, updateJob, type Context, type Done } from './context.ts'
import { adopt, endJob, expire, jobEnded, lost, unreachable } from './ends.ts'
import { bind, commitResume, endMachine, giveUpStart, observe, settle, start } from './machines.ts'
import { abortMove, advance, beginMove, confirmSuspended, sealAndCommit } from './moves.ts'
import { isOwned } from './offers.ts'
import { place } from './place.ts'
import { readWorld, Sights } from './world.ts'

/** A look does at most so many steps before others get their turn. */
const stepsAtMost = 40
/** How many due jobs are taken at a time. */
const batch = 200
/** With nothing due, the store is asked again this often all the same: another control plane may have written. */
const backstop = 30_000

/**
 * The loop: observe → decide → look again → act, one job at a time and each job alone. Level-triggered: whatever happened, a
 * look starts from what is remembered and seen, so one too many does no harm and a lost one is made good by the next.
 */
export class Engine {
  readonly #context: Context
  readonly checks = new Checks()
  readonly #sights: Sights
  readonly #looking = new Map<string, Promise<void>>()
  readonly #again = new Set<string>()
  readonly #timers = new Map<string, { readonly at: Instant; cancel(): void }>()
  /** jobs that wait for a place, woken when one may have come free */
  readonly #waiting = new Set<string>()
  readonly #woken = new Set<string>()
  #due: { cancel(): void } | null = null
  #stopped = false

  constructor(context: Context) {
    this.#context = context
    this.#sights = new Sights(context.clock)
    context.agents.listen({
      changed: (jobId) => this.wake(jobId),
      arrived: (agentId) => void this.#arrived(agentId),
      renew: (attemptId, nonce) => {
        this.#sights.renewAsked(attemptId, nonce)
        this.wake(jobIdOf(attemptId))
      },
      log: (attemptId, offset, bytes) => {
        try {
          return context.logs.append(attemptId, offset, bytes)
        } catch (error) {
          // a full disk, say: nothing is acknowledged, so it is sent again; the agent has more to tell than its log
          context.log.warn({ attempt: attemptId, err: error }, 'a piece of a log could not be kept; it comes again')
          return 0
        }
      },
    })
  }

  /** Takes up everything that was under way when the last control plane ended. */
  async start(): Promise<void> {
    const alive = await this.#context.store.attemptsAlive()
    for (const attempt of alive) if (attempt.state !== 'intended') this.#context.agents.serve(attempt)
    for (const attempt of alive) if (attempt.logLimit !== null) this.#context.logs.cut(attempt.id, attempt.logLimit)
    for (const jobId of new Set(alive.map((attempt) => attempt.jobId))) this.wake(jobId)
    for (const { id, state } of await this.#context.store.jobs({ ended: false, limit: Number.MAX_SAFE_INTEGER }))
      if (state.is === 'queued' || state.is === 'resuming') this.#waiting.add(id)
    await this.#takeDue()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#due?.cancel()
    for (const timer of this.#timers.values()) timer.cancel()
    await Promise.allSettled(this.#looking.values())
    await this.checks.flush(this.#context)
  }

  /** Something about this job may have changed: it is looked at, now or right after the look under way. */
  wake(jobId: string): void {
    if (this.#stopped) return
    if (this.#looking.has(jobId)) {
      this.#again.add(jobId)
      return
    }
    const look = this.#lookUntilQuiet(jobId).finally(() => {
      this.#looking.delete(jobId)
      if (this.#again.delete(jobId)) this.wake(jobId)
    })
    this.#looking.set(jobId, look)
  }

  /** A place may have come free: jobs that wait for one look again. */
  wakeWaiting(): void {
    for (const jobId of this.#waiting) {
      this.#woken.add(jobId)
      this.wake(jobId)
    }
  }

  /** Reads a job whole, as the loop sees it. */
  world(jobId: string): Promise<World | null> {
    return readWorld(this.#context, this.#sights, jobId)
  }

  async #arrived(agentId: string): Promise<void> {
    const attempts = await this.#context.store.attemptsOfAgent(agentId, { alive: true })
    for (const jobId of new Set(attempts.map((attempt) => attempt.jobId))) this.wake(jobId)
  }

  async #lookUntilQuiet(jobId: string): Promise<void> {
    try {
      await this.#look(jobId)
    } catch (error) {
      this.#context.log.error({ job: jobId, err: error }, 'a look at a job failed; it is looked at again')
      this.#wakeAt(jobId, this.#context.clock.now() + 2000)
    }
  }

  async #look(jobId: string): Promise<void> {
    const context = this.#context
    const read = () => this.world(jobId)
    const jump = this.#sights.clockJumped(context.clock)
    if (jump !== 0) context.log.warn({ jump_ms: jump }, 'the clock jumped; every lease counts as granted now')
    for (let steps = 0; steps < stepsAtMost; steps++) {
      if (this.#stopped) return
      let world = await read()
      if (!world) return
      const now = context.clock.now()
      if (this.#woken.delete(jobId)) world = { ...world, job: { ...world.job, due: 0 } }
      this.#order(world)
      const step = nextStep(world, now, (connection) => isOwned(context, connection))
      if (step.do !== 'wait') {
        const done = await this.#do(step, world, now)
        if (step.do === 'settle') this.wakeWaiting()
        if (done === 'again') continue
        // the step may have changed what the rest is reckoned from
        return this.#rest((await read()) ?? world, done.later)
      }
      const checked = await this.checks.look(context, this.#sights, world, read, now)
      if (checked.did === 'again') continue
      return this.#rest(
        world,
        Math.min(step.until, checked.lookAgainAt, checked.did === 'nothing' ? Infinity : checked.did.later),
      )
    }
    context.log.warn({ job: jobId }, `a look took ${stepsAtMost} steps and is not at rest; it goes on in a second`)
    this.#wakeAt(jobId, context.clock.now() + 1000)
  }

  #do(step: Exclude<Step, { do: 'wait' }>, world: World, now: Instant): Promise<Done> {
    const context = this.#context
    switch (step.do) {
      case 'place':
        return place(context, world, step.for, now)
      case 'start':
        return start(context, this.#sights, world, step.attempt)
      case 'bind':
        return bind(context, world, step.attempt, step.current)
      case 'give-up-start':
        return giveUpStart(context, world, step.attempt, {
          because: step.why,
          refused: step.refused,
          tryNext: step.tryNext,
        })
      case 'commit-resume':
        return commitResume(context, world, step.attempt)
      case 'begin-move':
        return beginMove(
          context,
          world,
          { kind: step.kind, by: world.job.wish?.by ?? { person: 'someone' }, on: step.on, because: step.why },
          now,
        )
      case 'advance':
        return advance(context, world, step.move, step.to, step.slot, now)
      case 'abort':
        return abortMove(context, world, step.move, step.why, step.refused)
      case 'seal-and-commit':
        return sealAndCommit(context, world, step.move)
      case 'confirm-suspended':
        return confirmSuspended(context, world, step.move, step.attempt)
      case 'job-ended':
        return jobEnded(context, world, step.attempt, step.state)
      case 'lost':
        return lost(context, world, step.attempt, step.proof)
      case 'unreachable':
        return unreachable(context, world, step.since, now)
      case 'adopt':
        return adopt(context, world, step.slot)
      case 'end-job':
        return endJob(context, world, step.state)
      case 'observe':
        return observe(context, this.#sights, step.attempt)
      case 'end-machine':
        return endMachine(context, this.#sights, world, step.attempt)
      case 'settle':
        return settle(context, this.#sights, world, step.attempt)
      case 'expire':
        return expire(context, world)
    }
  }

  /** Orders follow from what is remembered: they are derived anew at every look, and sent when they say something new. */
  #order({ job, attempts, move }: World): void {
    const { agents, keyOf } = this.#context
    for (const attempt of attempts)
      if (attempt.state === 'bound' || attempt.state === 'ending')
        agents.order(attempt, job.version, orderFor(job, attempt, move, keyOf(job.id)))
  }

  async #rest(world: World, until: Instant): Promise<void> {
    const { job, attempts } = world
    if ((job.state.is === 'queued' || job.state.is === 'resuming') && job.due > this.#context.clock.now())
      this.#waiting.add(job.id)
    else this.#waiting.delete(job.id)
    const awake = attempts.some(({ state }) => state !== 'gone')
    if (awake) {
      // it was looked at: a row that stayed due would be taken again and again. It is due when this look said so, not later: a
      // resume that waits for the machine before it to be gone looks for its place then.
      const now = this.#context.clock.now()
      if (job.due <= now) {
        const due = Math.min(Math.max(until, now + 1000), never)
        await commit(this.#context, job, [updateJob(job, { due })], [])
      }
      this.#wakeAt(job.id, until)
      return
    }
    // nothing of it runs: its row alone says when it is looked at again, so that a sleeping job costs a row and no timer
    this.#timers.get(job.id)?.cancel()
    this.#timers.delete(job.id)
    if (isEnded(job.state)) this.checks.forget(job.id)
    const due = dueAsleep(world, until)
    if (Math.abs(due - job.due) > 1000) await commit(this.#context, job, [updateJob(job, { due })], [])
    this.#scheduleDue(due)
  }

  #wakeAt(jobId: string, at: Instant): void {
    const before = this.#timers.get(jobId)
    if (before?.at === at) return
    before?.cancel()
    this.#timers.delete(jobId)
    if (at === Infinity || this.#stopped) return
    const timer = this.#context.clock.after(at - this.#context.clock.now(), () => {
      this.#timers.delete(jobId)
      this.wake(jobId)
    })
    this.#timers.set(jobId, { at, cancel: () => timer.cancel() })
  }

  #nextDueAt: Instant = Infinity

  #scheduleDue(at: Instant): void {
    if (at >= this.#nextDueAt || this.#stopped) return
    this.#nextDueAt = at
    this.#due?.cancel()
    this.#due = this.#context.clock.after(at - this.#context.clock.now(), () => void this.#takeDue())
  }

  async #takeDue(): Promise<void> {
    const { store, clock, log } = this.#context
    this.#nextDueAt = Infinity
    try {
      const due = await store.jobsDue(clock.now(), batch)
      for (const job of due) this.wake(job.id)
      await Promise.allSettled(due.map(({ id }) => this.#looking.get(id)))
      const next = due.length === batch ? clock.now() : await store.nextDue()
      this.#scheduleDue(Math.max(clock.now() + 50, Math.min(next ?? Infinity, clock.now() + backstop)))
    } catch (error) {
      log.error({ err: error }, 'what is due could not be read; it is tried again')
      this.#scheduleDue(clock.now() + 2000)
    }
  }
}
