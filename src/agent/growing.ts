import { archiveSoFar } from '../checkpoints/index.ts'
import type { Around } from './around.ts'
import type { Attempt } from './attempt.ts'
import { put } from './deliver.ts'

/** Declared outputs are looked at this often while the job runs; after a long sending less often. */
const lookEvery_ms = 5000
/** Sending takes at most one part in so many of the time. */
const shareOfTime = 20

interface Sent {
  /** of what was sent last; null: nothing yet */
  mark: string | null
  /** when it is looked at again; infinite while it is sent */
  next_ms: number
}

/**
 * Declared outputs on their way home while the job runs, as they grow (J-FILE-3): whole each time, where something was written since
 * the last time. What could not be sent is sent with the next look; nothing waits for it.
 */
export class Growing {
  readonly #around: Around
  readonly #sent = new WeakMap<Attempt, Sent>()

  constructor(around: Around) {
    this.#around = around
  }

  /** Once a second, for each attempt. */
  tick(attempt: Attempt): void {
    const around = this.#around
    const now = around.clocks.monotonic()
    const { start, ran, held, saving } = attempt.state
    if (!start || start.outputs.length === 0 || !ran || held || saving || !attempt.isAlive) return
    const sent = this.#sent.get(attempt) ?? { mark: null, next_ms: 0 }
    this.#sent.set(attempt, sent)
    if (now < sent.next_ms || !around.ready()) return
    sent.next_ms = Infinity
    void this.#send(attempt, sent, start.outputs).finally(() => {
      const then = around.clocks.monotonic()
      sent.next_ms = then + Math.max(lookEvery_ms, shareOfTime * (then - now))
    })
  }

  async #send(attempt: Attempt, sent: Sent, outputs: readonly string[]): Promise<void> {
    const around = this.#around
    const id = attempt.state.attempt
    try {
      const made = await archiveSoFar(attempt.work, outputs, sent.mark)
      if (made === null) return
      const { ok, status } = await put(around, id, made.archive, '?so_far=true')
      if (ok) sent.mark = made.mark
      else around.log.info({ attempt: id, status }, 'the outputs so far were not accepted')
    } catch (error) {
      around.log.debug({ attempt: id, error: (error as Error).message }, 'the outputs so far could not be sent')
    }
  }
}
