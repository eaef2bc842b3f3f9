import { why } from '../core/reasons.ts'
import { second, type Duration } from '../core/time/index.ts'
import type { ConnectionEntry } from '../providers/index.ts'
import type { InstallationRecord, Store } from '../store/port.ts'
import type { Clock, Random } from './ports.ts'

/** How often a control plane leaves word that it looks. */
const seenEvery: Duration = 30 * second
/** A gap longer than this is said in the record: nobody was looking. */
const gap: Duration = 2 * seenEvery

const row = 'installation'

/** The installation's one row: its id is part of every tag. Tells when nobody was looking since the last control plane. */
export async function readInstallation(store: Store, clock: Clock, random: Random): Promise<InstallationRecord> {
  const now = clock.now()
  const known = await store.get('installation', row)
  if (!known) {
    await store.apply({
      changes: [
        {
          do: 'insert',
          table: 'installation',
          row: { id: row, name: `i${random.letters(12)}`, createdAt: now, lastSeenAt: now },
        },
      ],
      events: [],
    })
    return readInstallation(store, clock, random)
  }
  if (now - known.lastSeenAt > gap) {
    const because = why('nobody.looking', {
      from: new Date(known.lastSeenAt).toISOString(),
      until: new Date(now).toISOString(),
    })
    await store.apply({
      changes: [{ do: 'update', table: 'installation', id: row, expect: known.version, row: { lastSeenAt: now } }],
      events: [
        { at: now, subject: 'portal', kind: 'nobody.looking', by: 'portal', why: because, facts: because.facts },
      ],
    })
  }
  return known
}

/** Leaves word now and then that somebody looks. */
export function keepSeen(store: Store, clock: Clock): { stop(): void } {
  let stopped = false
  let timer = clock.after(seenEvery, () => void tell())
  async function tell(): Promise<void> {
    const known = await store.get('installation', row)
    if (stopped || !known) return
    await store.apply({
      changes: [
        { do: 'update', table: 'installation', id: row, expect: known.version, row: { lastSeenAt: clock.now() } },
      ],
      events: [],
    })
    timer = clock.after(seenEvery, () => void tell())
  }
  return {
    stop: () => {
      stopped = true
      timer.cancel()
    },
  }
}

/** Makes sure that the connections of a fresh installation are there. */
export async function connect(store: Store, entries: readonly ConnectionEntry[]): Promise<void> {
  for (const { connection, provider, settings } of entries)
    await store.apply({
      changes: [
        {
          do: 'insert',
          table: 'connections',
          row: { id: connection, provider, settings, currency: 'USD', committedMicros: 0, capMicros: null },
        },
      ],
      events: [],
    })
}
