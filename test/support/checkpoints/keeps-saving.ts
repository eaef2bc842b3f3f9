/** Saves one state after another into a chain, until it is killed; each takes over what did not change. */
import { beginSave, directoryStore, newestManifest } from '../../../src/checkpoints/index.ts'
import { chainOn, someMeta } from '../../../src/checkpoints/chain/testing.ts'
import { stateOf } from './state.ts'

const chain = chainOn(await directoryStore(process.argv[2] as string))
const { manifest, lastSlot } = await newestManifest(chain)
process.stdout.write('ready\n')
for (let slot = lastSlot + 1, parent = manifest?.slot ?? null; ; slot++) {
  const writer = await beginSave({ ...chain, token: 1, slot, parent })
  if (writer.is === 'fenced') throw new Error('fenced')
  for (const [name, bytes] of Object.entries(stateOf(slot))) {
    const stream = writer.stream(name)
    await stream.write(bytes)
    await stream.end()
  }
  await writer.commit(someMeta)
  process.stdout.write(`${slot}\n`)
  parent = slot
}
