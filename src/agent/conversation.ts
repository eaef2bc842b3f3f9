import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Chain,
  DamageError,
  listenSdk,
  type Manifest,
  readManifest,
  readRecord,
  type RestoreOutcome,
  type SafePointOutcome,
  type SaveOutcome,
  saveOutputs,
  type SdkServer,
} from '../checkpoints/index.ts'
import type { AttemptReport } from '../contract/agent.ts'
import type { RefusedValue } from '../core/jobs/model.ts'
import type { Duration } from '../core/time/index.ts'
import type { Around } from './around.ts'
import type { Attempt } from './attempt.ts'
import { nowOf } from './clock.ts'
import { carryLog, unheardNote } from './last-words.ts'
import type { AttemptSeen, Step } from './model.ts'

type Hold = Extract<Step, { do: 'save' }>['hold']

/** The kernel's bound on the path of a Unix socket, without the byte that ends it. */
const longestSocketPath = 107
/** A job whose agent was away comes back at its next safe point; how often that is looked for. */
const reconnect: Duration = 100

const pause = (ms: Duration): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** An attempt's talk with its job's SDK, and what is done at a safe point: probe, save, hold. */
export class Conversation {
  readonly #attempt: Attempt
  readonly #around: Around
  readonly place: { readonly socket: string; readonly flag: string }
  #server: SdkServer | null = null
  #chain: Chain | null = null
  #manifest: Manifest | null = null
  #restored: AttemptSeen['restored'] = null
  #isLet = false
  /** gives up waiting for a safe point */
  #cancel: (() => void) | null = null
  #wanted: string | null = null

  constructor(attempt: Attempt, around: Around) {
    this.#attempt = attempt
    this.#around = around
    this.place = { socket: socketPath(attempt.folder), flag: join(attempt.folder, 'flag') }
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
    if (this.#cancel && this.#wanted !== this.#whatIsWanted()) this.#cancel()
  }

  async close(): Promise<void> {
    this.#cancel?.()
    const server = this.#server
    this.#server = null
    await server?.close().catch(() => {})
    for (const path of [this.place.socket, this.place.flag]) rmSync(path, { force: true })
    const folder = join(this.place.socket, '..')
    if (folder !== this.#attempt.folder) rmSync(folder, { recursive: true, force: true })
  }

  /** Whether a save whose end nobody saw went through: the chain knows. */
  async look(): Promise<void> {
    const { saving, token } = this.#attempt.state
    if (!saving) return
    const record = await readRecord(await this.#openChain(), saving.slot).catch((error: unknown) => {
      if (error instanceof DamageError) return null
      throw error
    })
    if (record?.is !== 'manifest' || record.token !== token) return this.#attempt.change({ saving: null })
    this.#attempt.change({
      saving: null,
      lastSlot: saving.slot,
      parent: saving.slot,
      saved: {
        slot: saving.slot,
        at: record.savedAt,
        bytes: record.bytes,
        storedBytes: record.storedBytes,
        took: Math.max(0, record.savedAt - saving.since),
      },
    })
  }

  async probe(move: string, wait: Duration): Promise<void> {
    const answer = (bytes: number, refused: readonly RefusedValue[], why: string | null): void =>
      this.#attempt.change({ probe: { move, bytes, refused, why } })
    const there = await this.#safePoint(wait)
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

  /** Brings it to a safe point and saves it there; with `hold` it is frozen there, and that is on disk before it is told. */
  async save(hold: Hold, wait: Duration): Promise<void> {
    const attempt = this.#attempt
    const began = this.#around.clocks.monotonic()
    const stopping = attempt.state.want.do === 'stop'
    const refuse = (why: string, refused: readonly RefusedValue[] = []): void => {
      const at = this.#around.clocks.wall()
      attempt.change({ saving: null, saveRefused: { move: hold?.move ?? null, refused, why: why.slice(0, 4000), at } })
      attempt.log.info({ why, refused: refused.length }, 'not saved')
      attempt.rest()
    }
    let held = false
    let isThere = false
    if (hold && hold.because !== 'order') this.#tellAlone(hold.because)
    try {
      const there = await this.#safePoint(wait)
      if (there === 'cancelled') return
      if (there !== 'there') return refuse(noSafePoint(there, wait))
      isThere = true
      attempt.ours(true)
      const saved = await this.#saveHere()
      switch (saved.is) {
        case 'refused':
          return refuse(inWords(saved.values.length), saved.values)
        case 'failed':
          return refuse(`the checkpoint could not be written: ${saved.why}`)
        case 'fenced':
          return await this.#fenced(saved)
      }
      const took = Math.max(0, Math.round(this.#around.clocks.monotonic() - began))
      const newest = {
        saving: null,
        saveRefused: null,
        lastSlot: saved.slot,
        parent: saved.slot,
        saved: {
          slot: saved.slot,
          at: this.#around.clocks.wall(),
          bytes: saved.bytes,
          storedBytes: saved.storedBytes,
          took,
        },
      }
      attempt.log.info({ slot: saved.slot, bytes: saved.bytes, took_ms: took }, 'saved')
      attempt.change(newest)
      if (!hold || (hold.because === 'order' && !this.#stillOrdered(hold.move))) return
      // it waits at the safe point for our word; frozen it cannot even miss that
      if (!(await attempt.freeze()) || this.#server?.at == null) {
        attempt.thaw()
        return refuse('the job was saved, but could not be held: it did not stand still')
      }
      const until = hold.holdFor === null ? null : nowOf(this.#around.clocks).boot + hold.holdFor
      try {
        attempt.change({
          held: { move: hold.move, slot: saved.slot, logOffset: attempt.unheard().until, because: hold.because, until },
        })
      } catch (error) {
        // what is not on disk was not said: it goes on
        attempt.thaw()
        throw error
      }
      held = true
      attempt.change({ undeclared: await attempt.undeclared() })
    } finally {
      if (isThere) attempt.ours(false)
      if (stopping && !attempt.state.stop && !attempt.state.exit)
        attempt.change({ stop: { saved: true, askedAt: null } })
      if (!held && !stopping) this.go()
    }
  }

  /** The intent is on disk before the first byte, so that an agent that comes after this one looks whether it went through. */
  async #saveHere(): Promise<SaveOutcome> {
    const { state, work } = this.#attempt
    const chain = await this.#openChain()
    const slot = state.lastSlot + 1
    const unheard = this.#attempt.unheard()
    const savedAt = this.#around.clocks.wall()
    this.#attempt.change({ saving: { slot, since: savedAt } })
    const server = this.#server
    if (!server) return { is: 'failed', why: 'the job ended' }
    return await server.save({
      ...chain,
      token: state.token,
      slot,
      parent: state.parent,
      savedAt,
      notes: { told: state.told.slice(-20) as never, log: unheardNote(unheard) },
      more: async (writer) => {
        const refused = await saveOutputs(writer, work, state.start?.outputs ?? [])
        if (refused.length === 0) await carryLog(writer, unheard)
        return refused
      },
    })
  }

  /** A slot taken by someone else means that this attempt is not the job any more (hard rule of the chain). */
  async #fenced({ by }: Extract<SaveOutcome, { is: 'fenced' }>): Promise<void> {
    const { token, saving } = this.#attempt.state
    if (by.is === 'manifest' && by.token === token) return await this.look()
    this.#attempt.tell('agent.fenced', { slot: saving?.slot ?? 0, by: by.is }, { saving: null, ending: 'superseded' })
  }

  #stillOrdered(move: string | null): boolean {
    const { want, voided } = this.#attempt.state
    return want.do === 'hold' && want.move === move && !voided.includes(want.move)
  }

  #tellAlone(because: 'notice' | 'deadline'): void {
    const notice = this.#around.notice()
    const left =
      because === 'notice'
        ? (notice?.endsAt ?? 0) - this.#around.clocks.wall()
        : (this.#attempt.lease.until ?? 0) - nowOf(this.#around.clocks).boot
    const { told } = this.#attempt.state
    const code = because === 'notice' ? 'agent.notice' : 'agent.deadline'
    // tries that follow each other are one thing that it saw
    if (told.at(-1)?.code !== code) this.#attempt.tell(code, { left_ms: Math.max(0, Math.round(left)) })
  }

  /** Waits for a safe point; a job that comes back to its agent meanwhile is waited for too. */
  async #safePoint(wait: Duration): Promise<'there' | 'late' | 'gone' | 'cancelled'> {
    const until = this.#around.clocks.monotonic() + wait
    this.#wanted = this.#whatIsWanted()
    const cancelled = new Promise<'cancelled'>((resolve) => {
      this.#cancel = () => resolve('cancelled')
    })
    try {
      for (;;) {
        const left = until - this.#around.clocks.monotonic()
        const server = this.#server
        if (!server || this.#attempt.state.exit) return 'gone'
        if (left <= 0) return 'late'
        const outcome: SafePointOutcome | 'cancelled' = await Promise.race([server.safePoint(left), cancelled])
        if (outcome === 'cancelled') {
          server.unask()
          return 'cancelled'
        }
        if (outcome.is === 'there') return 'there'
        if (outcome.is === 'late') return 'late'
        if (outcome.is === 'closed') return 'gone'
        await Promise.race([pause(reconnect), cancelled])
      }
    } finally {
      this.#cancel = null
    }
  }

  /** What a safe point is waited for: when this changes while waiting, the wait is over. */
  #whatIsWanted(): string {
    const { want } = this.#attempt.state
    const notice = this.#around.notice()?.endsAt ?? 0
    return want.do === 'hold' ? `hold ${want.move}` : `${want.do} ${want.do === 'probe' ? want.move : ''} ${notice}`
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

const inWords = (count: number): string =>
  count === 1 ? 'one value cannot be carried' : `${count} values cannot be carried`

const noSafePoint = (is: 'late' | 'gone', wait: Duration): string =>
  is === 'late'
    ? `the job reached no safe point within ${Math.round(wait / 1000)} s: it is long in one step, or does not call job.steps`
    : 'the job ended before it reached a safe point'

/** In the attempt's folder where its path fits into a socket's address, else in a private folder under the shortest there is. */
const socketPath = (folder: string): string => {
  const near = join(folder, 's')
  if (Buffer.byteLength(near) <= longestSocketPath) return near
  const uid = process.getuid?.() ?? 0
  const own = join('/tmp', `portal-${uid}-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`)
  mkdirSync(own, { recursive: true, mode: 0o700 })
  const { mode, uid: owner } = lstatSync(own)
  if (owner !== uid || (mode & 0o777) !== 0o700) throw new Error(`${own} belongs to somebody else: remove it`)
  return join(own, 's')
}
