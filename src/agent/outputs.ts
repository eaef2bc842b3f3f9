import type { SaveWriter } from '../checkpoints/index.ts'
import type { RefusedValue } from '../core/jobs/model.ts'
import { packOutputs, presentOutputs, refusedOutputs } from './files.ts'
import { outputsStream } from './start.ts'

/**
 * Adds the declared outputs to a save, as one stream (a tar) behind the SDK's (J-FILE-2). What of them cannot be carried is
 * named, and refuses the save. The job stands at its safe point meanwhile, so nothing of them changes under the reader
 * unless something else of the job writes: then tar names the file, and the save fails.
 */
export const carryOutputs = async (
  writer: SaveWriter,
  work: string,
  outputs: readonly string[],
): Promise<readonly RefusedValue[]> => {
  if (outputs.length === 0) return []
  const refused = await refusedOutputs(work, outputs)
  if (refused.length > 0) return refused
  const present = await presentOutputs(work, outputs)
  if (present.length === 0) return []
  const stream = writer.stream(outputsStream)
  for await (const bytes of packOutputs(work, present)) await stream.write(bytes as Buffer)
  await stream.end()
  return []
}
