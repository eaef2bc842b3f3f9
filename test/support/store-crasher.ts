/** Applies transactions without an end, telling each that was applied, until it is killed. Each is whole in five places. */
import { writeSync } from 'node:fs'
import { openStore } from '../../src/store/index.ts'
import { attempt, event, job } from './records.ts'

const [where, from] = process.argv.slice(2) as [string, string]
const store = await openStore(where)
for (let n = Number(from); ; n++) {
  const id = `j${n}`
  const applied = await store.apply({
    changes: [
      { do: 'insert', table: 'jobs', row: job(id, { due: n }) },
      { do: 'insert', table: 'attempts', row: attempt(id, 1) },
      { do: 'add', table: 'connections', id: 'c', micros: 1, withinCap: true },
    ],
    events: [event(id, { n, which: 'first' }), event(id, { n, which: 'second' })],
  })
  if (applied.is !== 'applied') throw new Error(`${id}: ${JSON.stringify(applied)}`)
  // past every buffer of this process, so that what was told was told
  writeSync(1, `${n}\n`)
}
