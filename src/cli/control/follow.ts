import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../contract/client.ts'
import { PortalError } from '../../contract/errors.ts'
import type { Cli } from '../context.ts'
import { reach } from './reach.ts'

/** For how long in a row a control plane that cannot be had is tried again. */
const tryFor_ms = 60_000

interface Followed {
  readonly id: string | null
}

/**
 * Follows a stream until it ends or the person interrupts. Where it breaks it goes on behind the last event seen, on a
 * control plane that was started anew if need be, at another address or not; the person is told once each time.
 *
 * @param open opens the stream behind an event, without tries of its own
 */
export async function* following<E extends Followed>(
  cli: Cli,
  first: Client,
  open: (client: Client, behind: { readonly lastEventId?: string; readonly retryForMs: 0 }) => AsyncIterable<E>,
  signal: AbortSignal = cli.interrupted,
): AsyncGenerator<E> {
  let client = first
  let lastEventId: string | undefined
  let brokenSince: number | null = null
  for (let pause = 50; ; pause = Math.min(pause * 2, 2000)) {
    try {
      if (brokenSince !== null) client = await reach(cli)
      for await (const event of open(client, { ...(lastEventId ? { lastEventId } : {}), retryForMs: 0 })) {
        if (brokenSince !== null) cli.note(cli.errorColors.dim('portal: connected again'))
        brokenSince = null
        pause = 50
        lastEventId = event.id ?? lastEventId
        yield event
      }
      return
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof PortalError) || !isPassing(error)) throw error
      const now = performance.now()
      if (brokenSince === null)
        cli.note(cli.errorColors.dim('portal: lost the control plane, connecting again; the job goes on'))
      brokenSince ??= now
      if (now - brokenSince > tryFor_ms) throw error
      await sleep(pause, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
    }
  }
}

/** Unreachable now, or stopping, or not yet started: worth another try. */
const isPassing = ({ exitCode, code }: PortalError): boolean => exitCode === 5 || code === 'start_failed'
