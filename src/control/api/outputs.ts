import type { World } from '../../core/jobs/world.ts'
import type { Context } from '../engine/context.ts'
import type { OutputsNow } from '../http/api.ts'
import { carriedAt, soFar } from '../http/archives.ts'

/**
 * Where the outputs of a job lie now (J-FILE-2), the newest attempt first: as it left them, as far as it has written them, or
 * as its last checkpoint carries them, which is what a suspended job goes on with.
 */
export async function outputsOf(context: Context, { job, attempts }: World): Promise<OutputsNow> {
  const { base, spec } = job
  const declared = spec.outputs
  const sent = (archive: string): OutputsNow => ({ archive, bytes: null, declared })
  if (declared.length > 0)
    for (const { id, token } of attempts.toReversed()) {
      if (context.outputsIn(id)) return sent(id)
      const written = context.outputsIn(soFar(id))
      if (written && (job.current === token || base?.token !== token)) return sent(soFar(id))
      if (base?.token !== token) continue
      const bytes = await context.chains.outputs(job.id, base.slot)
      if (bytes !== null) return { archive: carriedAt(id, base.slot), bytes, declared }
    }
  return { archive: null, bytes: null, declared }
}
