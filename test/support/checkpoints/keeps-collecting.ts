/** Drops what lies before the newest checkpoint that it verified, until it is killed. */
import { collect, directoryStore, newestManifest, verify } from '../../../src/checkpoints/index.ts'
import { chainOn } from '../../../src/checkpoints/chain/testing.ts'

const chain = chainOn(await directoryStore(process.argv[2] as string))
process.stdout.write('ready\n')
for (;;) {
  const { manifest } = await newestManifest(chain)
  if (manifest) {
    await verify(chain, manifest)
    const { dropped } = await collect({ ...chain, verified: manifest.slot, keep: [] })
    process.stdout.write(`${dropped.length}\n`)
  }
  await new Promise((resolve) => setTimeout(resolve, 1))
}
