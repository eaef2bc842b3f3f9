import type { RefusedValue } from '../../core/jobs/model.ts'
import { lookAtOutputs, type Found } from './look.ts'
import { grown, packFiles } from './pack.ts'

/**
 * The declared outputs of a working directory as an archive by themselves, for a job that has ended. What cannot be carried
 * is left out and named: nobody can remove it any more. Where nothing is there, an archive of nothing says so. The stream
 * fails when a file changes while it is read; then it is to be made anew.
 */
export const archiveOf = async (
  root: string,
  outputs: readonly string[],
): Promise<{ readonly archive: ReadableStream<Uint8Array>; readonly leftOut: readonly RefusedValue[] }> => {
  const { found, refused: leftOut } = await lookAtOutputs(root, outputs)
  return { archive: stream((write) => packFiles(root, found, write)), leftOut }
}

/**
 * The same while the job runs: each file as far as it was written when it was found. The stream fails when one becomes shorter
 * or is replaced meanwhile.
 *
 * @param before the mark of the archive before: null is the answer where nothing was written since, or nothing is there yet
 */
export const archiveSoFar = async (
  root: string,
  outputs: readonly string[],
  before: string | null,
): Promise<{ readonly archive: ReadableStream<Uint8Array>; readonly mark: string } | null> => {
  const { found } = await lookAtOutputs(root, outputs)
  const mark = markOf(found)
  if (found.length === 0 || mark === before) return null
  return { archive: stream((write) => packFiles(root, found, write, grown)), mark }
}

const markOf = (found: readonly Found[]): string =>
  found.map(({ path, stats }) => `${path}\0${stats.ino}\0${stats.size}\0${stats.mtimeNs}`).join('\n')

const stream = (
  pack: (write: (bytes: Uint8Array) => Promise<void>) => Promise<readonly RefusedValue[]>,
): ReadableStream<Uint8Array> => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const run = async (): Promise<void> => {
    try {
      // the packer uses its buffer again, the stream keeps what it is given
      const changed = await pack((bytes) => writer.write(Uint8Array.from(bytes)))
      if (changed[0]) throw new Error(`${changed[0].path} ${changed[0].reason}`)
      await writer.close()
    } catch (error) {
      // a reader that went away has failed it already
      await writer.abort(error).catch(() => {})
    }
  }
  void run()
  return readable
}
