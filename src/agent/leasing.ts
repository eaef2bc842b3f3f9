import { mkdirSync } from 'node:fs'
import type { Duration } from '../core/time/index.ts'
import type { Around } from './around.ts'
import { nowOf } from './clock.ts'
import { readDeadline, writeDeadline } from './keeper/index.ts'
import { Lease } from './lease.ts'
import type { AttemptState } from './model.ts'

/** Keeps one attempt's lease: asks for it when it is due, and puts its end where the keeper reads it. */
export class Leasing {
  readonly #around: Around
  readonly #folder: string
  readonly #lease = new Lease()
  /** boot time of the last jump of the clock that no lease was asked for and granted after */
  #suspectSince: Duration | null = null

  constructor(around: Around, folder: string) {
    this.#around = around
    this.#folder = folder
  }

  /** Boot time at which it ends; Infinity: detached; null: none was granted. */
  get until(): Duration | null {
    return this.#lease.until
  }

  get isSuspect(): boolean {
    return this.#suspectSince !== null
  }

  /** What an agent before was granted, as the keeper reads it: known also while nobody answers. */
  takeUp(): void {
    const until = readDeadline(this.#folder)
    if (until !== null) this.#lease.found(until)
  }

  /** After a connect or a restart every lease is asked for anew. */
  askSoon(): void {
    this.#lease.askSoon()
  }

  /** The clock jumped: only a lease that is asked for from now on counts again. False: it needs none. */
  jumped({ start }: AttemptState): boolean {
    this.#lease.askSoon()
    if (start?.settings.leaseLength === 'detached') return false
    this.#suspectSince = nowOf(this.#around.clocks).boot
    return true
  }

  renew({ start, exit, ending, attempt }: AttemptState): void {
    if (!start || exit || ending) return
    const { leaseLength, leaseRenew } = start.settings
    if (leaseLength === 'detached') {
      if (this.#lease.until === Infinity) return
      this.#lease.detach()
      return this.keepDeadline()
    }
    const { boot } = nowOf(this.#around.clocks)
    if (boot < this.#lease.due(leaseRenew) || !this.#around.ready()) return
    this.#around.send({ t: 'renew', attempt, nonce: this.#lease.ask(boot) })
  }

  /** `late`, `counts`, or `clears`: the first one since the clock jumped. */
  granted(nonce: string, length: Duration): 'late' | 'counts' | 'clears' {
    if (!this.#lease.granted(nonce, length)) return 'late'
    this.keepDeadline()
    if (this.#suspectSince === null || this.#lease.grantedFor < this.#suspectSince) return 'counts'
    this.#suspectSince = null
    return 'clears'
  }

  /** Written before a process is started, and with each lease. */
  keepDeadline(): void {
    const { until } = this.#lease
    if (until === null) return
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    writeDeadline(this.#folder, until === Infinity ? 'never' : until)
  }
}
