import type { RefusedValue } from '../../core/jobs/model.ts'
import { lookAtOutputs } from './look.ts'
import { packFiles } from './pack.ts'

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
  const { readable: archive, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const pack = async (): Promise<void> => {
    try {
      // the packer uses its buffer again, the stream keeps what it is given
      const changed = await packFiles(root, found, (bytes) => writer.write(Uint8Array.from(bytes)))
      if (changed[0]) throw new Error(`${changed[0].path} ${changed[0].reason}`)
      await writer.close()
    } catch (error) {
      // a reader that went away has failed it already
      await writer.abort(error).catch(() => {})
    }
  }
  void pack()
  return { archive, leftOut }
}
