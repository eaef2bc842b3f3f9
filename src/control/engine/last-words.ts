import type { Manifest } from '../../checkpoints/index.ts'
import type { AttemptRecord, JobRecord } from '../../core/jobs/model.ts'
import { why } from '../../core/reasons.ts'
import { event, type Context, type NewEvent } from './context.ts'

/**
 * What an attempt's agent put beside a checkpoint because nobody might hear it any more: the end of its log is taken into the
 * job's, and what it decided alone is told, so that both survive a machine that went away unheard.
 *
 * @param manifest a verified one
 */
export async function lastWords(
  context: Context,
  job: JobRecord,
  attempt: AttemptRecord,
  manifest: Manifest,
): Promise<readonly NewEvent[]> {
  if (manifest.token !== attempt.token) return []
  const { from, alone } = notesOf(manifest)
  if (from !== null) {
    let offset = from
    for await (const bytes of context.chains.lastLog(job.id, manifest)) {
      context.logs.append(attempt.id, offset, bytes)
      offset += bytes.length
    }
  }
  return alone === null
    ? []
    : [
        event(job, 'notice', 'portal', why('agent.alone', { offer: attempt.offer.id, ...alone }), {
          attempt: attempt.token,
        }),
      ]
}

/** Written by an agent of any version: what is not as expected says nothing. */
function notesOf({ notes, savedAt }: Manifest) {
  const { log, told } = (isRecord(notes) ? notes : {}) as { readonly log?: unknown; readonly told?: unknown }
  const from = isRecord(log) && Number.isSafeInteger(log['from']) ? (log['from'] as number) : null
  const last: unknown = Array.isArray(told) ? told.at(-1) : null
  const code = isRecord(last) ? last['code'] : null
  const facts = isRecord(last) && isRecord(last['facts']) ? last['facts'] : {}
  const left_ms = facts['left_ms']
  const because = code === 'agent.notice' ? 'a notice' : code === 'agent.deadline' ? 'the end of its lease' : null
  return {
    from,
    alone: because !== null && typeof left_ms === 'number' ? { because, left_ms, saved_at: savedAt } : null,
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
