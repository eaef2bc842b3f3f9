import { createReadStream } from 'node:fs'
import { lastLogStream, type Json, type SaveWriter } from '../checkpoints/index.ts'
import type { Unheard } from './logs.ts'

/** More than this of an unheard log is not put beside a checkpoint: a notice has no time for it. */
const most = 64 * 1024 * 1024

/** What the manifest says of it; null: all of the log was heard. */
export const unheardNote = ({ from, until }: Unheard): Json => (until > from ? { from } : null)

/**
 * Puts the end of the log beside the state: the machine may be gone before anybody hears it, and its disk with it. While a
 * control plane is there this is next to nothing.
 */
export const carryLog = async (writer: SaveWriter, { path, from, until }: Unheard): Promise<void> => {
  if (until <= from) return
  const stream = writer.stream(lastLogStream)
  for await (const bytes of createReadStream(path, { start: from, end: Math.min(until, from + most) - 1 }))
    await stream.write(bytes as Buffer)
  await stream.end()
}
