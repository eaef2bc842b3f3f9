import { createCipheriv, createHash } from 'node:crypto'
import type { CheckpointStore } from '../port.ts'
import { jobKey } from './key.ts'
import type { Chain, Committed, Fenced, Manifest, SaveMeta } from './model.ts'
import { beginSave } from './save.ts'
import { openStreams } from './streams.ts'

/** What tests of chains share. */
export const chainOn = (store: CheckpointStore, jobId = 'job'): Chain => ({
  store,
  jobId,
  key: jobKey(Buffer.alloc(32, 1), jobId),
})

export const someMeta: SaveMeta = {
  method: 'sdk',
  savedAt: 1_700_000_000_000,
  values: [{ path: 'state.step', kind: 'int', bytes: 8 }],
  environment: { language: 'python', version: '3.11.2' },
  digest: 'abc',
  meta: { graph: 1 },
  notes: [],
}

/** Bytes that do not shrink, the same for the same seed. */
export const noise = (length: number, seed: string): Buffer =>
  createCipheriv('aes-128-ctr', createHash('md5').update(seed).digest(), Buffer.alloc(16)).update(Buffer.alloc(length))

export const saveBytes = async (
  chain: Chain,
  place: { readonly token: number; readonly slot: number; readonly parent: number | null },
  streams: Readonly<Record<string, Uint8Array>>,
): Promise<Committed | Fenced> => {
  const writer = await beginSave({ ...chain, ...place })
  if (writer.is === 'fenced') return writer
  for (const [name, bytes] of Object.entries(streams)) {
    const stream = writer.stream(name)
    await stream.write(bytes)
    await stream.end()
  }
  return await writer.commit(someMeta)
}

export const readBytes = async (chain: Chain, manifest: Manifest): Promise<Record<string, Buffer>> => {
  const streams: Record<string, Buffer> = {}
  for (const { name, bytes } of manifest.streams) streams[name] = Buffer.alloc(bytes)
  for await (const { stream, offset, bytes } of openStreams(chain, manifest)) streams[stream]?.set(bytes, offset)
  return streams
}
