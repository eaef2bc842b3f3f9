import {
  checkStore,
  collect,
  jobKey,
  lastLogStream,
  outputsStream,
  newestManifest,
  openStreams,
  readManifest,
  readRecord,
  removeJob,
  seal,
  verify,
  type Chain,
  type CheckpointStore,
  type Manifest,
} from '../checkpoints/index.ts'
import type { Chains } from './engine/context.ts'

/** The chains of checkpoints in a store, each under its job's own key. */
export function openChains(store: CheckpointStore, masterKey: Uint8Array): Chains {
  const chain = (jobId: string): Chain => ({ store, jobId, key: jobKey(masterKey, jobId) })
  return {
    seal: (jobId, after, by) => seal({ ...chain(jobId), after, by }),
    async verify(jobId, slot) {
      const manifest = await readManifest(chain(jobId), slot)
      await verify(chain(jobId), manifest)
      return manifest
    },
    async *lastLog(jobId, manifest) {
      for await (const { bytes } of openStreams(chain(jobId), manifest, (name) => name === lastLogStream)) yield bytes
    },
    async outputs(jobId, slot) {
      const manifest = await readManifest(chain(jobId), slot)
      if (!manifest.streams.some(({ name }) => name === outputsStream)) return null
      const pieces = openStreams(chain(jobId), manifest, (name) => name === outputsStream)
      return (async function* () {
        for await (const { bytes } of pieces) yield bytes
      })()
    },
    newest: (jobId) => newestManifest(chain(jobId)),
    async list(jobId) {
      const manifests: Manifest[] = []
      for (const slot of await store.slots(jobId)) {
        const record = await readRecord(chain(jobId), slot).catch(() => null)
        if (record?.is === 'manifest') manifests.push(record)
      }
      return manifests
    },
    check: () => checkStore(store),
    async collect(jobId, verified) {
      if (verified === null) await removeJob(chain(jobId))
      else await collect({ ...chain(jobId), verified, keep: [] })
    },
  }
}
