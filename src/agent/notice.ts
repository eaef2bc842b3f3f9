import { readFileSync, watch } from 'node:fs'
import { join } from 'node:path'
import type { Instant } from '../core/time/index.ts'

/** Where the provider says that it will take the machine. Each kind of machine has its own; this is what they have in common. */
export interface NoticeSource {
  /** What it says now; throws nothing. */
  read(): { readonly endsAt: Instant } | null
  /** Calls back when it may say something else; it is read each second all the same. */
  watch(changed: () => void): { close(): void }
}

/** A file `metadata.json` beside the bootstrap, `{"notice": {"endsAt": MS} | null}`, as a metadata service would answer. */
export const metadataFile = (folder: string): NoticeSource => {
  const path = join(folder, 'metadata.json')
  let last: { readonly endsAt: Instant } | null = null
  return {
    read() {
      let text: string
      try {
        text = readFileSync(path, 'utf8')
      } catch {
        return null
      }
      try {
        const { notice } = JSON.parse(text) as { notice?: { endsAt?: unknown } | null }
        last = typeof notice?.endsAt === 'number' && Number.isFinite(notice.endsAt) ? { endsAt: notice.endsAt } : null
      } catch {
        // half written: what it said before stands until the next look
      }
      return last
    },
    watch: (changed) =>
      watch(folder, { persistent: false }, (_, name) => {
        if (name === null || name.startsWith('metadata.json')) changed()
      }),
  }
}
