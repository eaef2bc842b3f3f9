import { EventEmitter, once } from 'node:events'
import type { EventView, LogEnd } from '../../contract/schemas.ts'
import { isEnded } from '../../core/jobs/model.ts'
import type { World } from '../../core/jobs/world.ts'
import type { Store } from '../../store/port.ts'
import type { Engine } from '../engine/engine.ts'
import type { LogPiece, LogPosition } from '../http/api.ts'
import type { Logs } from '../logs.ts'
import { eventView, jobView } from './views.ts'

const pieceBytes = 64 * 1024
const page = 500
/** A follower looks again this often though nobody told it: another control plane may have written. */
const backstop = 5000

/** Tells followers of events that there are new ones. */
export class Happenings {
  readonly #emitter = new EventEmitter().setMaxListeners(0)

  happened(): void {
    this.#emitter.emit('event')
  }

  async next(signal: AbortSignal): Promise<void> {
    await once(this.#emitter, 'event', { signal: AbortSignal.any([signal, AbortSignal.timeout(backstop)]) }).catch(
      () => {},
    )
  }
}

export async function* followEvents(
  store: Store,
  happenings: Happenings,
  after: number,
  subject: string | null,
  signal: AbortSignal,
): AsyncGenerator<EventView> {
  let last = after
  while (!signal.aborted) {
    const waiting = happenings.next(signal)
    const events = await store.events(last, { ...(subject !== null && { subject }), limit: page })
    for (const event of events) {
      if (signal.aborted) return
      last = event.seq
      yield eventView(event)
    }
    if (events.length === 0) await waiting
  }
}

/** The attempts whose logs are the job's, in their order: those that executed. */
const logsOf = ({ attempts }: World) => attempts.filter(({ ranFrom }) => ranFrom !== null)

export async function* readLog(
  engine: Engine,
  logs: Logs,
  jobId: string,
  from: LogPosition | null,
): AsyncGenerator<LogPiece & { is: 'log' }> {
  const world = await engine.world(jobId)
  if (!world) return
  for (const { id, token, logLimit } of logsOf(world)) {
    if (from && token < from.token) continue
    let offset = from?.token === token ? from.offset : 0
    for (;;) {
      const bytes = logs.read(id, offset, Math.min(pieceBytes, (logLimit ?? Infinity) - offset))
      if (bytes.length === 0) break
      yield { is: 'log', token, offset, bytes }
      offset += bytes.length
    }
  }
}

/** The log as it grows; ends once the job has ended or is suspended and all of it was given. */
export async function* followLog(
  engine: Engine,
  logs: Logs,
  happenings: Happenings,
  jobId: string,
  from: LogPosition | null,
  signal: AbortSignal,
): AsyncGenerator<LogPiece> {
  let position = from
  while (!signal.aborted) {
    const woken = AbortSignal.any([signal, AbortSignal.timeout(backstop)])
    const change = new AbortController()
    const waiting = Promise.race([
      logs.grown(jobId, AbortSignal.any([woken, change.signal])),
      happenings.next(AbortSignal.any([woken, change.signal])),
    ])
    // the state first, the bytes after: what was written before the job ended is given before its end is told
    const world = await engine.world(jobId)
    if (!world) return
    let gave = false
    for await (const piece of readLog(engine, logs, jobId, position)) {
      if (signal.aborted) return change.abort()
      gave = true
      position = { token: piece.token, offset: piece.offset + piece.bytes.length }
      yield piece
    }
    if (!gave && (isEnded(world.job.state) || world.job.state.is === 'suspended')) {
      change.abort()
      yield { is: 'end', ...endOf(world) }
      return
    }
    if (!gave) await waiting
    change.abort()
  }
}

function endOf(world: World): LogEnd {
  const { state, exit, why, resumableUntil } = jobView(world, world.job.state.since)
  return { state, exit, why, resumableUntil }
}
