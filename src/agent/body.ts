import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import type { Instant } from '../core/time/index.ts'
import type { Clocks } from './clock.ts'
import { easeMoves, makeCgroups, noCgroups, removeCgroups } from './keeper/cgroup.ts'
import {
  askToEnd,
  type First,
  firstOf,
  freeze,
  isOver,
  keeperOf,
  type KeeperFolder,
  keptOf,
  killAll,
  shutKeeper,
  thaw,
  watchKeeper,
} from './keeper/index.ts'
import { type Used, usedBy } from './measure.ts'
import type { AttemptSeen } from './model.ts'

/** A kill is repeated at this pace until nothing is left. */
export const killEvery_ms = 50

/** The processes of one attempt, as the agent sees and handles them: through the keeper's folder, the kernel, its cgroups. */
export class Body {
  readonly #folder: string
  readonly #attempt: string
  readonly #clocks: Clocks
  #keeper: KeeperFolder
  #first: First | null = null
  #thaws = 0
  #killedAt = -Infinity
  #watch: { close(): void } | null = null
  /** whether its processes may stand still with nobody holding them */
  frozen = false

  constructor(folder: string, attempt: string, clocks: Clocks) {
    this.#folder = folder
    this.#attempt = attempt
    this.#clocks = clocks
    this.#keeper = { folder, cgroups: noCgroups }
  }

  get keeper(): KeeperFolder {
    return this.#keeper
  }

  /** The first process of its namespace, as seen last. */
  get first(): First | null {
    return this.#first
  }

  /** A keeper is there, under this boot. */
  get isKept(): boolean {
    return keeperOf(this.#folder) !== null
  }

  /** Its own cgroups: of this attempt in this folder, since agents of other installations may serve one of the same name. */
  makeCgroups(): void {
    if (this.#keeper.cgroups !== noCgroups) return
    const place = createHash('sha256').update(this.#folder).digest('hex').slice(0, 8)
    this.#keeper = { folder: this.#folder, cgroups: makeCgroups(`${this.#attempt}-${place}`) }
    easeMoves()
  }

  /** Looks for the first process, and from now on calls back when the log or the exit file changes. */
  watchOver(changed: (name: string) => void): void {
    this.#first = firstOf(this.#folder) ?? this.#first
    this.#watch ??= watchKeeper(this.#folder, changed)
  }

  see(started: boolean): Pick<AttemptSeen, 'keeper' | 'kept' | 'keptAt' | 'frozen'> {
    // the keeper first: once it is over, what it put down is final
    const keeper = started && !isOver(this.#keeper, this.#first) ? 'running' : 'over'
    const kept = started ? keptOf(this.#folder) : ({ is: 'new' } as const)
    return {
      keeper,
      kept,
      keptAt: kept.is === 'new' || kept.is === 'begun' ? null : this.#keptAt(),
      frozen: this.frozen,
    }
  }

  /** Nothing of it is left, or was ever there. */
  get isOver(): boolean {
    return isOver(this.#keeper, this.#first)
  }

  /** What has not begun by now never will. */
  shut(): void {
    shutKeeper(this.#folder)
  }

  used(): Used {
    return usedBy(this.#keeper.cgroups, this.#first?.pid ?? null)
  }

  /** Stands everything still; true once it does, though somebody thawed it meanwhile. */
  async freeze(): Promise<boolean> {
    for (;;) {
      const before = this.#thaws
      if (!(await freeze(this.#keeper))) return false
      if (before === this.#thaws) return true
    }
  }

  thaw(): void {
    this.#thaws++
    this.frozen = false
    thaw(this.#keeper)
  }

  askToEnd(): void {
    askToEnd(this.#folder)
  }

  kill(): void {
    const now = this.#clocks.monotonic()
    if (now - this.#killedAt < killEvery_ms) return
    this.#killedAt = now
    this.#first ??= firstOf(this.#folder)
    killAll(this.#keeper, this.#first)
  }

  /** Once nothing of it is left. */
  cleanUp(): void {
    removeCgroups(this.#keeper.cgroups)
  }

  close(): void {
    this.#watch?.close()
  }

  #keptAt(): Instant | null {
    const stats = statSync(`${this.#folder}/exit`, { throwIfNoEntry: false })
    return stats ? Math.round(stats.mtimeMs) : null
  }
}
