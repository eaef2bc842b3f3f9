import { archiveOf } from '../checkpoints/index.ts'
import type { Around } from './around.ts'
import type { Attempt } from './attempt.ts'

/** @param more behind the path */
export const put = async (
  { bootstrap }: Around,
  attempt: string,
  archive: ReadableStream<Uint8Array>,
  more = '',
): Promise<Response> => {
  const response = await fetch(`${bootstrap.url.replace(/\/$/, '')}/api/agent/attempts/${attempt}/outputs${more}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${bootstrap.token}`, 'content-type': 'application/x-tar' },
    body: archive,
    duplex: 'half',
  })
  await response.body?.cancel()
  return response
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Answers after which the same again cannot succeed: the attempt is over, or was never this agent's. */
const isFinal = (status: number): boolean =>
  status >= 400 && status < 500 && ![401, 408, 423, 425, 429].includes(status)

/**
 * Sends the declared outputs home, again and again until they are accepted, or nobody wants them any more. True: they need
 * not be sent again.
 */
export const deliver = async (attempt: Attempt, around: Around): Promise<boolean> => {
  const { log } = around
  const { start, attempt: id } = attempt.state
  if (!start) return true
  for (let tries = 0; attempt.state.want.do !== 'end' && !attempt.isForgotten; tries++) {
    try {
      const { archive, leftOut } = await archiveOf(attempt.work, start.outputs)
      const response = await put(around, id, archive)
      if (response.ok) {
        for (const { path, reason } of leftOut) log.warn({ attempt: id, path, reason }, 'an output could not be sent')
        return true
      }
      if (isFinal(response.status)) {
        attempt.tell('agent.outputs_refused', { status: response.status })
        return true
      }
      log.info({ attempt: id, status: response.status }, 'the outputs were not accepted yet')
    } catch (error) {
      if (tries % 20 === 0)
        log.info({ attempt: id, error: (error as Error).message }, 'the outputs could not be sent yet')
    }
    await pause(Math.min(100 * 2 ** Math.min(tries, 6), 5000) * (0.75 + Math.random() / 2))
  }
  return false
}
