import type { AttemptRecord, JobRecord, MoveRecord } from '../../src/core/jobs/model.ts'
import { isEnded } from '../../src/core/jobs/model.ts'
import type { Applied, Change, Store, Transaction } from '../../src/store/port.ts'
import type { Chance } from './chance.ts'
import type { Truth } from './truth.ts'

const forward = ['intended', 'started', 'ready', 'bound', 'ending', 'gone'] as const

/** A store that holds every transaction against what is true at that moment, and may leave its answer open. */
export class CheckedStore {
  /** so many transactions to come are answered with `unknown`, whether they were applied or not */
  unknowns = 0
  readonly store: Store
  readonly #under: Store
  readonly #truth: Truth
  readonly #chance: Chance
  #last: Promise<unknown> = Promise.resolve()

  constructor(under: Store, truth: Truth, chance: Chance) {
    this.#under = under
    this.#truth = truth
    this.#chance = chance
    this.store = new Proxy(under, {
      get: (target, name) => {
        if (name === 'apply') return (transaction: Transaction) => this.#inTurn(transaction)
        const value = Reflect.get(target, name) as unknown
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }

  #inTurn(transaction: Transaction): Promise<Applied> {
    const applied = this.#last.then(() => this.#apply(transaction))
    this.#last = applied.catch(() => {})
    return applied
  }

  async #apply(transaction: Transaction): Promise<Applied> {
    if (this.unknowns > 0 && transaction.changes.length > 0) {
      this.unknowns -= 1
      if (this.#chance.happens(0.5)) await this.#checked(transaction)
      return { is: 'unknown', error: 'the connection broke at commit' }
    }
    return this.#checked(transaction)
  }

  async #checked(transaction: Transaction): Promise<Applied> {
    const before = await this.#rows(transaction)
    const applied = await this.#under.apply(transaction)
    if (applied.is !== 'applied') return applied
    for (const { change, row } of before) {
      const after = await this.#under.get(change.table as 'jobs', change.id)
      const attempts = change.table === 'jobs' ? await this.#under.attemptsOf(change.id) : []
      this.#check(change, row, after, attempts, transaction)
    }
    return applied
  }

  async #rows({ changes }: Transaction) {
    const updates = changes.filter((one): one is Extract<Change, { do: 'update' }> => one.do === 'update')
    return Promise.all(
      updates.map(async (change) => ({ change, row: await this.#under.get(change.table as 'jobs', change.id) })),
    )
  }

  #check(
    change: Extract<Change, { do: 'update' }>,
    before: unknown,
    after: unknown,
    attempts: readonly AttemptRecord[],
    all: Transaction,
  ): void {
    if (!before || !after) return
    if (change.table === 'jobs') this.#job(before as JobRecord, after as JobRecord, attempts)
    if (change.table === 'attempts') this.#attempt(before as AttemptRecord, after as AttemptRecord, all)
    if (change.table === 'moves') this.#move(before as MoveRecord, after as MoveRecord)
  }

  #job(before: JobRecord, after: JobRecord, attempts: readonly AttemptRecord[]): void {
    const { id } = after
    const truth = this.#truth
    const nameOf = (token: number | null) => `${id}.${token}`
    if (after.current !== before.current && after.current !== null) {
      const begins = attempts.find(({ token }) => token === after.current)
      if (begins?.from != null && !truth.restored.has(begins.id))
        truth.wrong(`${begins.id} became current before it had its state back`)
    }
    if (after.current !== before.current) {
      const executing = truth
        .executing(id)
        .filter((one) => one !== nameOf(after.current) && !truth.revived.has(one))
        .filter((one) => !(after.current !== null ? truth.haunted : truth.paused).has(one))
      // whoever the job is taken from stands still, is proven gone, or has ended
      if (executing.length > 0 && (after.current !== null || after.state.is === 'suspended' || isEnded(after.state)))
        truth.wrong(
          `${id} was taken from ${nameOf(before.current)} (now ${after.state.is}) while ${executing.join(', ')} executes`,
        )
    }
    if (after.base?.slot !== before.base?.slot && after.base) {
      const now = truth.saved.get(`${id}/${after.base.slot}`)
      const then = before.base && truth.saved.get(`${id}/${before.base.slot}`)
      if (!now) truth.wrong(`${id} has the base ${after.base.slot}, which nobody saved`)
      else if (then && (now.progress < then.progress || after.base.slot < before.base!.slot))
        truth.wrong(`the base of ${id} went back from ${then.progress} to ${now.progress}`)
      if (now && now.attempt !== nameOf(before.current))
        truth.wrong(`${id} took a checkpoint of ${now.attempt}, while ${nameOf(before.current)} was current`)
    }
    if ('why' in after.state && after.state.why.code.startsWith('lost.') && !('why' in before.state)) {
      // J-LOST-1: on its last committed checkpoint, whatever it was made for
      const mine = nameOf(before.current)
      const newest = [...truth.saved]
        .filter(([, { attempt }]) => attempt === mine)
        .map(([key]) => Number(key.slice(id.length + 1)))
      if (!truth.haunted.has(mine) && Math.max(0, ...newest) > (after.base?.slot ?? 0))
        truth.wrong(
          `${id} was lost at ${after.base?.slot ?? 'no checkpoint'}, though slot ${Math.max(...newest)} was saved`,
        )
    }
    if (before.base && !after.base && !isEnded(after.state))
      truth.wrong(`${id} lost its base while it is ${after.state.is}`)
    if (after.state.is === 'suspended' && before.state.is === 'suspending') {
      // a planned suspension loses nothing
      const base = after.base && truth.saved.get(`${id}/${after.base.slot}`)
      const reached = before.current === null ? null : truth.reached(nameOf(before.current))
      if (
        base &&
        reached !== null &&
        !truth.haunted.has(nameOf(before.current)) &&
        'person' in after.state.by &&
        base.progress < reached
      )
        truth.wrong(`${id} was suspended at ${base.progress}, though its source had reached ${reached}`)
    }
    if (before.state.is === 'moving' && after.current !== before.current && after.current !== null) {
      const base = after.base && truth.saved.get(`${id}/${after.base.slot}`)
      const reached = truth.reached(nameOf(before.current))
      if (base && reached !== null && !truth.haunted.has(nameOf(before.current)) && base.progress < reached)
        truth.wrong(`${id} was moved at ${base.progress}, though its source had reached ${reached}`)
    }
    if (
      after.state.is === 'succeeded' &&
      before.state.is !== 'succeeded' &&
      truth.finished.get(id) !== nameOf(before.current)
    )
      truth.wrong(`${id} succeeded, but ${nameOf(before.current)} did not finish its work`)
    if (after.lastToken < before.lastToken) truth.wrong(`${id} draws tokens that it has drawn before`)
  }

  #attempt(before: AttemptRecord, after: AttemptRecord, all: Transaction): void {
    if (forward.indexOf(after.state) < forward.indexOf(before.state))
      this.#truth.wrong(`attempt ${after.id} went back from ${before.state} to ${after.state}`)
    if (
      after.state === 'gone' &&
      before.state !== 'gone' &&
      this.#truth.isExecuting(after.id) &&
      !this.#truth.revived.has(after.id)
    )
      this.#truth.wrong(`attempt ${after.id} is settled as gone while it executes`)
    // a row is let go only with the write that takes the job from it
    if (after.state === 'ending' && before.state !== 'ending') {
      const job = all.changes.find((one) => one.do === 'update' && one.table === 'jobs')
      if (!job) this.#truth.wrong(`attempt ${after.id} was let go by a write of its own`)
    }
  }

  #move(before: MoveRecord, after: MoveRecord): void {
    if (before.outcome !== null && after.outcome !== before.outcome)
      this.#truth.wrong(`move ${after.id} was ${before.outcome}, and then ${after.outcome}`)
  }
}
