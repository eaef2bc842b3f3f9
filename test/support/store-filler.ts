/** Fills the disk under a store, and tells what each step came to: the error's code, and what is still there afterwards. */
import { rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openStore, StoreError } from '../../src/store/index.ts'
import { attempt, event, job } from './records.ts'

const where = process.argv[2] as string
const ballast = join(dirname(where), 'ballast')
writeFileSync(ballast, Buffer.alloc(128 * 1024))
const store = await openStore(where)
const write = (n: number) =>
  store.apply({
    changes: [
      { do: 'insert', table: 'jobs', row: job(`j${n}`) },
      { do: 'insert', table: 'attempts', row: attempt(`j${n}`, 1) },
    ],
    events: [event(`j${n}`, { n })],
  })

let written = 0
let code: string | null = null
while (code === null)
  try {
    if ((await write(written)).is !== 'applied') break
    written++
  } catch (error) {
    code = error instanceof StoreError ? error.code : String(error)
  }
const counts = async () => [
  (await store.jobs({ limit: 1e6 })).length,
  (await store.attemptsAlive()).length,
  (await store.events(0, { limit: 1e6 })).at(-1)?.seq,
]
const full = await counts()
rmSync(ballast)
const after = await write(written)
console.log(JSON.stringify({ written, code, full, after: after.is, later: await counts() }))
await store.close()
