import { check, type Concluded } from '../../core/decide.ts'
import type { DecisionRecord, Outcome } from '../../core/decisions.ts'
import { changesPlace, jobPolicies, type JobAct } from '../../core/jobs/policies/index.ts'
import { isEnded } from '../../core/jobs/model.ts'
import type { World } from '../../core/jobs/world.ts'
import { why, type Why } from '../../core/reasons.ts'
import { never, type Instant } from '../../core/time/index.ts'
import type { Change } from '../../store/port.ts'
import { commit, event, updateJob, type Context, type Done } from './context.ts'
import { renew } from './machines.ts'
import { abortMove, beginMove, ttlDue } from './moves.ts'
import type { Sights } from './world.ts'

interface Fold extends DecisionRecord {
  readonly version: number
  /** an act that left the job where it is: resting after it says nothing new */
  readonly steady?: boolean
}

type Outcomes = ReadonlyMap<string, { readonly outcome: Outcome; readonly why: Why }>

interface Recording {
  readonly changes: readonly Change[]
  readonly folds: ReadonlyMap<string, Fold>
}

/** The decisions of policies: carried out, and kept so that every one can be explained. */
export class Checks {
  /** the last decision by job and policy; its count grows in memory and is written when it changes (hard-parts 6) */
  readonly #folds = new Map<string, Fold>()

  /** Asks the policies about a job; carries out at most one act that changes where it runs, and records what each concluded. */
  async look(
    context: Context,
    sights: Sights,
    world: World,
    readAgain: () => Promise<World | null>,
    now: Instant,
  ): Promise<{ readonly did: Done | 'nothing'; readonly lookAgainAt: Instant }> {
    if (isEnded(world.job.state)) return { did: 'nothing', lookAgainAt: Infinity }
    const looked = check(jobPolicies, world, now, changesPlace)
    let did: Done | 'nothing' = 'nothing'
    const outcomes = new Map<string, { readonly outcome: Outcome; readonly why: Why }>()
    let recorded = false
    for (const acting of looked.acts) {
      // J-LOOP-3: what the decision rests on is read again; if it no longer holds, it is dropped and recorded as such
      const fresh = await readAgain()
      const again = fresh && jobPolicies.find(({ name }) => name === acting.policy)?.decide(fresh, context.clock.now())
      if (!fresh || again?.kind !== 'act' || JSON.stringify(again.act) !== JSON.stringify(acting.act)) {
        outcomes.set(acting.policy, { outcome: 'dropped', why: acting.why })
        did = 'again'
        continue
      }
      // a lease and the decision that grants it are one write
      const along =
        again.act.do === 'renew' && looked.acts.length === 1
          ? await this.#toRecord(
              context,
              world,
              looked.verdicts,
              new Map([[acting.policy, { outcome: 'acted', why: again.why }]]),
              now,
            )
          : null
      const { done, outcome, because } = await this.#act(
        context,
        sights,
        fresh,
        acting.policy,
        again.act,
        again.why,
        now,
        along?.changes ?? [],
      )
      if (along !== null && outcome === 'acted') {
        this.#keep(along)
        recorded = true
      }
      outcomes.set(acting.policy, { outcome, why: because })
      if (done !== 'nothing') did = done
    }
    if (!recorded) await this.#record(context, world, looked.verdicts, outcomes, now)
    return { did, lookAgainAt: looked.lookAgainAt }
  }

  async #act(
    context: Context,
    sights: Sights,
    world: World,
    policy: string,
    act: JobAct,
    because: Why,
    now: Instant,
    along: readonly Change[],
  ): Promise<{ readonly done: Done | 'nothing'; readonly outcome: Outcome; readonly because: Why }> {
    const { job, move } = world
    const by = { policy }
    switch (act.do) {
      case 'renew': {
        const granted = await renew(context, sights, world, act.attempt, act.nonce, along)
        if (granted === 'cap') {
          const attempt = world.attempts.find(({ id }) => id === act.attempt)
          return {
            done: 'nothing',
            outcome: 'refused',
            because: why('lease.cap', { connection: attempt?.offer.connection ?? '' }),
          }
        }
        return {
          done: granted === 'raced' ? 'again' : 'nothing',
          outcome: granted === 'raced' ? 'dropped' : 'acted',
          because,
        }
      }
      case 'suspend': {
        // a suspension under way, or one that is committed, is what was asked for; a move gives way to it
        if (move?.kind === 'suspension') return { done: 'nothing', outcome: 'acted', because }
        if (move && move.outcome === null)
          return { done: await abortMove(context, world, move, because, []), outcome: 'acted', because }
        if (job.state.is !== 'running' || job.wish?.to === 'stop')
          return { done: 'nothing', outcome: 'outranked', because }
        return {
          done: await beginMove(context, world, { kind: 'suspension', by, on: null, because }, now),
          outcome: 'acted',
          because,
        }
      }
      case 'stop': {
        if (job.wish?.to === 'stop') return { done: 'nothing', outcome: 'acted', because }
        await commit(
          context,
          job,
          [updateJob(job, { wish: { to: 'stop', by, at: now, keep: true, why: because } })],
          [event(job, 'asked', by, because, { to: 'stop' })],
        )
        return { done: 'again', outcome: 'acted', because }
      }
      case 'end': {
        if (job.state.is !== 'suspended') return { done: 'nothing', outcome: 'dropped', because }
        const { ttlKeep } = job.spec.settings
        const state = { is: 'stopped', since: now, by, why: because, resumableUntil: now + ttlKeep } as const
        await commit(
          context,
          job,
          [updateJob(job, { state, wish: null, due: now + ttlKeep })],
          [event(job, 'ended', by, because, { state: 'stopped', exit: null })],
        )
        return { done: 'again', outcome: 'acted', because }
      }
    }
  }

  async #record(
    context: Context,
    world: World,
    verdicts: readonly Concluded<JobAct>[],
    outcomes: Outcomes,
    now: Instant,
  ): Promise<void> {
    const record = await this.#toRecord(context, world, verdicts, outcomes, now)
    if (record.changes.length > 0) {
      const applied = await context.store.apply({ changes: record.changes, events: [] })
      // an explanation that could not be written is written at the next look: nothing was decided by it
      if (applied.is !== 'applied') return this.forget(world.job.id)
    }
    this.#keep(record)
  }

  #keep({ folds }: Recording): void {
    for (const [key, fold] of folds) this.#folds.set(key, fold)
  }

  /** What is to be written of a check, and how the folds stand once it is. */
  async #toRecord(
    context: Context,
    world: World,
    verdicts: readonly Concluded<JobAct>[],
    outcomes: Outcomes,
    now: Instant,
  ): Promise<Recording> {
    const folds = new Map<string, Fold>()
    const changes: Change[] = []
    for (const verdict of verdicts) {
      const acted = outcomes.get(verdict.policy)
      const outcome: Outcome =
        acted?.outcome ?? (verdict.outranked ? 'outranked' : verdict.kind === 'warn' ? 'warned' : 'rested')
      const because = acted?.why ?? verdict.why
      const key = `${world.job.id} ${verdict.policy}`
      const before = this.#folds.get(key) ?? (await context.store.lastDecision(world.job.id, verdict.policy))
      const lookAgainAt =
        verdict.lookAgainAt === undefined || verdict.lookAgainAt === Infinity ? null : verdict.lookAgainAt
      if (before && before.outcome === outcome && before.why.code === because.code) {
        folds.set(key, { ...before, why: because, lastAt: now, count: before.count + 1, lookAgainAt })
        continue
      }
      if (before && this.#folds.has(key) && before.count > 1)
        changes.push({
          do: 'update',
          table: 'decisions',
          id: before.id,
          expect: before.version,
          row: { count: before.count, lastAt: before.lastAt, why: before.why, lookAgainAt: before.lookAgainAt },
        })
      const id = `${world.job.id}-${String(now).padStart(16, '0')}-${verdict.policy}-${context.random.letters(4)}`
      const row = {
        id,
        subject: world.job.id,
        policy: verdict.policy,
        outcome,
        why: because,
        firstAt: now,
        lastAt: now,
        count: 1,
        lookAgainAt,
      }
      changes.push({ do: 'insert', table: 'decisions', row })
      const steady = outcome === 'acted' && verdict.kind === 'act' && !changesPlace(verdict.act)
      folds.set(key, { ...row, version: 1, steady })
    }
    return { changes, folds }
  }

  /** Decisions as they stand now, their counts included. */
  current(jobId: string): readonly DecisionRecord[] {
    return [...this.#folds].filter(([key]) => key.startsWith(`${jobId} `)).map(([, fold]) => fold)
  }

  forget(jobId: string): void {
    for (const key of this.#folds.keys()) if (key.startsWith(`${jobId} `)) this.#folds.delete(key)
  }

  /** The counts that are in memory only, for a control plane that stops. */
  async flush(context: Context): Promise<void> {
    for (const fold of this.#folds.values())
      if (fold.count > 1)
        await context.store.apply({
          changes: [
            {
              do: 'update',
              table: 'decisions',
              id: fold.id,
              expect: fold.version,
              row: { count: fold.count, lastAt: fold.lastAt, why: fold.why },
            },
          ],
          events: [],
        })
    this.#folds.clear()
  }
}

/** When a job of which nothing runs is to be looked at again. */
export const dueAsleep = (world: World, until: Instant): Instant =>
  Math.min(until === Infinity ? never : until, world.job.state.is === 'suspended' ? ttlDue(world.job) : never)
