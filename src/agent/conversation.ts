import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Chain,
  DamageError,
  listenSdk,
  type Manifest,
  readManifest,
  type RestoreOutcome,
  type SdkServer,
} from '../checkpoints/index.ts'
import type { AttemptReport } from '../contract/agent.ts'
import type { RefusedValue } from '../core/jobs/model.ts'
import type { Duration } from '../core/time/index.ts'
import type { Around } from './around.ts'
import type { Attempt } from './attempt.ts'
import type { AttemptSeen } from './model.ts'
import { noSafePoint, SafePoints } from './safe-points.ts'
import { Saver, type Hold } from './saver.ts'
import { socketPath } from './socket-path.ts'

/** An attempt's talk with its job's SDK: what it begins from, how it goes on, and what is done at its safe points. */
export class Conversation {
  readonly #attempt: Attempt
  readonly #around: Around
  readonly place: { readonly socket: string; readonly flag: string }
  #server: SdkServer | null = null
  #chain: Chain | null = null
  #manifest: Manifest | null = null
  #restored: AttemptSeen['restored'] = null
  #isLet = false
  readonly #points: SafePoints
  readonly #saver: Saver

  constructor(attempt: Attempt, around: Around) {
    this.#attempt = attempt
    this.#around = around
    this.place = { socket: socketPath(attempt.folder), flag: join(attempt.folder, 'flag') }
    const server = (): SdkServer | null => this.#server
    this.#points = new SafePoints(attempt, around, server)
    this.#saver = new Saver(attempt, around, {
      server,
      chain: () => this.#openChain(),
      point: (wait) => this.#points.wait(wait),
      go: () => this.go(),
    })
  }

  get connected(): boolean {
    return this.#server?.client != null
  }

  get restored(): AttemptSeen['restored'] {
    return this.#restored
  }

  get isLet(): boolean {
    return this.#isLet
  }

  get asks(): boolean {
    return this.#server?.at?.asks === 'checkpoint'
  }

  progress(): AttemptReport['progress'] {
    return this.#server?.progress() ?? { turns: 0, done: null, total: null }
  }

  /**
   * Reads what the attempt begins from and listens for its SDK. `failed`: it cannot begin from that, which is remembered.
   * The second time it answers what it answered the first time.
   */
  async open(): Promise<(Chain & { readonly manifest: Manifest }) | null | 'failed'> {
    const { start, from, ran } = this.#attempt.state
    if (!start) return null
    const chain = await this.#openChain()
    let begin = this.#manifest && { ...chain, manifest: this.#manifest }
    if (from !== null && !begin)
      try {
        this.#manifest = await readManifest(chain, from)
        begin = { ...chain, manifest: this.#manifest }
      } catch (error) {
        if (!(error instanceof DamageError) && !ran) throw error
        if (ran) this.#attempt.log.error({ err: error }, 'its first checkpoint cannot be read again')
        else {
          this.#attempt.change({ restoreFailed: { slot: from, refused: [], why: (error as Error).message } })
          return 'failed'
        }
      }
    if (this.#server || start.checkpoint === 'none') return begin
    mkdirSync(join(this.place.socket, '..'), { recursive: true, mode: 0o700 })
    this.#server = await listenSdk({
      socketPath: this.place.socket,
      flagPath: this.place.flag,
      bitExact: start.settings.bitExact,
      restore: begin,
    })
    this.#listen(this.#server)
    return begin
  }

  /** Past `job.state()`, now or as soon as it is there. */
  letRun(): void {
    this.#isLet = true
    this.#server?.run()
  }

  /** Lets it go on from its safe point; one that is not there (any more) is asked for none. */
  go(): void {
    if (this.#server?.at) this.#server.go()
    else this.#server?.unask()
  }

  /** What was waited for may not be wanted any more: an order changed, or a notice came. */
  reconsider(): void {
    this.#points.reconsider()
  }

  async close(): Promise<void> {
    this.#points.giveUp()
    const server = this.#server
    this.#server = null
    await server?.close().catch(() => {})
    for (const path of [this.place.socket, this.place.flag]) rmSync(path, { force: true })
    const folder = join(this.place.socket, '..')
    if (folder !== this.#attempt.folder) rmSync(folder, { recursive: true, force: true })
  }

  async probe(move: string, wait: Duration): Promise<void> {
    const answer = (bytes: number, refused: readonly RefusedValue[], why: string | null): void =>
      this.#attempt.change({ probe: { move, bytes, refused, why } })
    const there = await this.#points.wait(wait)
    if (there === 'cancelled') return
    if (there !== 'there') return answer(0, [], noSafePoint(there, wait))
    this.#attempt.ours(true)
    try {
      const probed = await this.#server?.probe()
      if (!probed || probed.is === 'failed')
        return answer(0, [], `the job could not be asked: ${probed?.why ?? 'it ended'}`)
      if (probed.is === 'refused') return answer(0, probed.values, null)
      answer(Math.round(probed.bytes), [], null)
    } finally {
      this.#attempt.ours(false)
      this.go()
    }
  }

  /** Whether a save whose end nobody saw went through: the chain knows. */
  look(): Promise<void> {
    return this.#saver.look()
  }

  /** Brings it to a safe point and saves it there; with `hold` it is frozen there, and that is on disk before it is told. */
  save(hold: Hold, wait: Duration): Promise<void> {
    return this.#saver.save(hold, wait)
  }

  async #openChain(): Promise<Chain> {
    const { start } = this.#attempt.state
    if (!start) throw new Error('nothing is known of this attempt’s job')
    this.#chain ??= {
      store: await this.#around.store(),
      jobId: start.jobId,
      key: Buffer.from(start.key, 'base64'),
    }
    return this.#chain
  }

  #listen(server: SdkServer): void {
    const attempt = this.#attempt
    server.on('connected', ({ language, version, again }) => {
      const { sdk } = attempt.state
      attempt.log.info({ language, version, again }, 'the job’s SDK is there')
      if (sdk?.language !== language || sdk.version !== version) attempt.change({ sdk: { language, version } })
      attempt.wake()
    })
    server.on('disconnected', (why) => {
      attempt.log.info({ why }, 'the job’s SDK is gone')
      attempt.wake()
    })
    server.on('restored', (outcome) => {
      // ended by us: that is no answer of the job's
      if (this.#server !== server) return
      const { from } = attempt.state
      this.#restored =
        outcome.is === 'nothing' || outcome.is === 'restored'
          ? { is: outcome.is }
          : { is: 'failed', failure: { slot: from ?? 0, ...failureOf(outcome) } }
      attempt.log.info({ is: outcome.is }, 'restore')
      this.#around.changed()
      attempt.wake()
    })
    server.on('safePoint', () => {
      attempt.wake()
      // it came for what is not wanted any more: the connection broke, and what was asked was given up meanwhile
      if (!attempt.isBusy && !attempt.state.held) this.go()
    })
    if (this.#isLet) server.run()
  }
}

const failureOf = (
  outcome: Extract<RestoreOutcome, { why: string }>,
): { readonly refused: readonly RefusedValue[]; readonly why: string } => ({
  refused: outcome.is === 'refused' ? outcome.values : [],
  why: outcome.why.slice(0, 4000) || 'the job did not take its state back',
})
