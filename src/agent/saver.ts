import {
  type Chain,
  DamageError,
  readRecord,
  type SaveOutcome,
  saveOutputs,
  type SdkServer,
} from '../checkpoints/index.ts'
import type { RefusedValue } from '../core/jobs/model.ts'
import type { Duration } from '../core/time/index.ts'
import type { Around } from './around.ts'
import type { Attempt } from './attempt.ts'
import { nowOf } from './clock.ts'
import { carryLog, unheardNote } from './last-words.ts'
import type { Step } from './model.ts'
import { noSafePoint, type SafePoints } from './safe-points.ts'

export type Hold = Extract<Step, { do: 'save' }>['hold']

/** What saving needs of the talk with the job. */
export interface Talk {
  server(): SdkServer | null
  chain(): Promise<Chain>
  point: SafePoints['wait']
  /** lets the job go on from its safe point */
  go(): void
}

/** Saves a job at its safe points, and holds it there where that was asked for. */
export class Saver {
  readonly #attempt: Attempt
  readonly #around: Around
  readonly #talk: Talk

  constructor(attempt: Attempt, around: Around, talk: Talk) {
    this.#attempt = attempt
    this.#around = around
    this.#talk = talk
  }

  async look(): Promise<void> {
    const { saving, token } = this.#attempt.state
    if (!saving) return
    const record = await readRecord(await this.#talk.chain(), saving.slot).catch((error: unknown) => {
      if (error instanceof DamageError) return null
      throw error
    })
    if (record?.is !== 'manifest' || record.token !== token) return this.#attempt.change({ saving: null })
    const took = Math.max(0, record.savedAt - saving.since)
    this.#remember({ ...record, slot: saving.slot }, record.savedAt, took)
  }

  async save(hold: Hold, wait: Duration): Promise<void> {
    const attempt = this.#attempt
    const began = this.#around.clocks.monotonic()
    const stopping = attempt.state.want.do === 'stop'
    let held = false
    let isThere = false
    if (hold && hold.because !== 'order') this.#tellAlone(hold.because)
    try {
      const there = await this.#talk.point(wait)
      if (there === 'cancelled') return
      if (there !== 'there') return this.#refuse(hold, noSafePoint(there, wait))
      isThere = true
      attempt.ours(true)
      const slot = await this.#saveHere(hold, began)
      if (slot === null || !hold || (hold.because === 'order' && !this.#stillOrdered(hold.move))) return
      held = await this.#hold(hold, slot)
      if (held) attempt.change({ undeclared: await attempt.undeclared() })
    } finally {
      if (isThere) attempt.ours(false)
      if (stopping && !attempt.state.stop && !attempt.state.exit)
        attempt.change({ stop: { saved: true, askedAt: null } })
      if (!held && !stopping) this.#talk.go()
    }
  }

  /** @returns the slot; null: nothing was saved, and why is remembered */
  async #saveHere(hold: Hold, began: Duration): Promise<number | null> {
    const saved = await this.#write()
    switch (saved.is) {
      case 'refused':
        this.#refuse(hold, inWords(saved.values.length), saved.values)
        return null
      case 'failed':
        this.#refuse(hold, `the checkpoint could not be written: ${saved.why}`)
        return null
      case 'fenced':
        await this.#fenced(saved)
        return null
      case 'committed': {
        const took = Math.max(0, Math.round(this.#around.clocks.monotonic() - began))
        this.#attempt.log.info({ slot: saved.slot, bytes: saved.bytes, took_ms: took }, 'saved')
        this.#remember(saved, this.#around.clocks.wall(), took, { saveRefused: null })
        return saved.slot
      }
    }
  }

  /** The intent is on disk before the first byte, so that an agent that comes after this one looks whether it went through. */
  async #write(): Promise<SaveOutcome> {
    const { state, work } = this.#attempt
    const chain = await this.#talk.chain()
    const slot = state.lastSlot + 1
    const unheard = this.#attempt.unheard()
    const savedAt = this.#around.clocks.wall()
    this.#attempt.change({ saving: { slot, since: savedAt } })
    const server = this.#talk.server()
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

  /** Freezes it where it waits for our word: so it cannot even miss that. False: it goes on. */
  async #hold({ because, move, holdFor }: NonNullable<Hold>, slot: number): Promise<boolean> {
    const attempt = this.#attempt
    if (!(await attempt.freeze()) || this.#talk.server()?.at == null) {
      attempt.thaw()
      this.#refuse({ because, move, holdFor }, 'the job was saved, but could not be held: it did not stand still')
      return false
    }
    const until = holdFor === null ? null : nowOf(this.#around.clocks).boot + holdFor
    try {
      attempt.change({ held: { move, slot, logOffset: attempt.unheard().until, because, until } })
    } catch (error) {
      // what is not on disk was not said: it goes on
      attempt.thaw()
      throw error
    }
    return true
  }

  #remember(
    { slot, bytes, storedBytes }: { readonly slot: number; readonly bytes: number; readonly storedBytes: number },
    at: number,
    took: Duration,
    more: { readonly saveRefused?: null } = {},
  ): void {
    this.#attempt.change({
      ...more,
      saving: null,
      lastSlot: slot,
      parent: slot,
      saved: { slot, at, bytes, storedBytes, took },
    })
  }

  #refuse(hold: Hold, why: string, refused: readonly RefusedValue[] = []): void {
    const at = this.#around.clocks.wall()
    const saveRefused = { move: hold?.move ?? null, refused, why: why.slice(0, 4000), at }
    this.#attempt.change({ saving: null, saveRefused })
    this.#attempt.log.info({ why, refused: refused.length }, 'not saved')
    this.#attempt.rest()
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
}

const inWords = (count: number): string =>
  count === 1 ? 'one value cannot be carried' : `${count} values cannot be carried`
