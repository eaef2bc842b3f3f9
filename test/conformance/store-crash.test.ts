import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { openStore } from '../../src/store/index.ts'
import { connection } from '../support/records.ts'

const crasher = fileURLToPath(new URL('../support/store-crasher.ts', import.meta.url))
const kills = 12

/** Starts the writer, kills it some time after its first transaction, and gives the last that it told. */
async function killedWhileWriting(where: string, from: number, afterMs: number): Promise<number> {
  const child = spawn(process.execPath, [crasher, where, String(from)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let told = ''
  child.stdout.on('data', (bytes) => (told += bytes))
  const exited = once(child, 'exit')
  await once(child.stdout, 'data')
  await sleep(afterMs)
  child.kill('SIGKILL')
  expect(await exited).toEqual([null, 'SIGKILL'])
  return Number(told.trimEnd().split('\n').at(-1))
}

test('a writer that is killed leaves every transaction whole or absent, and every one that it told', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portal-crash-'))
  const where = join(folder, 'portal.db')
  try {
    let store = await openStore(where)
    await store.apply({ changes: [{ do: 'insert', table: 'connections', row: connection('c') }], events: [] })
    await store.close()
    for (let round = 0, written = 0; round < kills; round++) {
      const told = await killedWhileWriting(where, written, Math.random() * 60)
      store = await openStore(where)
      const jobs = await store.jobs({ limit: Number.MAX_SAFE_INTEGER })
      // one more may be there than was told: it was applied, and killed before it could say so
      expect(jobs.length - told - 1, `after kill ${round}`).toBeOneOf([0, 1])
      expect(await store.attemptsAlive()).toHaveLength(jobs.length)
      expect(await store.get('connections', 'c')).toMatchObject({ committedMicros: jobs.length })
      const events = await store.events(0, { limit: Number.MAX_SAFE_INTEGER })
      expect(events.map(({ seq, facts }) => [seq, facts['n'], facts['which']])).toEqual(
        jobs.flatMap((_, n) => [
          [2 * n + 1, n, 'first'],
          [2 * n + 2, n, 'second'],
        ]),
      )
      written = jobs.length
      await store.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
