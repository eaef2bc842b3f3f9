import { execFileSync, spawn } from 'node:child_process'
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
const filler = fileURLToPath(new URL('../support/store-filler.ts', import.meta.url))
const kills = 12

const noSmallDisk = (() => {
  try {
    execFileSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', tmpdir()], { stdio: 'ignore' })
    return null
  } catch {
    return 'a small disk cannot be mounted here (unshare -rm): run as root, or allow user namespaces'
  }
})()
if (noSmallDisk !== null) console.warn(`a full disk is not tested: ${noSmallDisk}`)

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

test.skipIf(noSmallDisk !== null)(
  'a full disk is named, takes nothing away, and is written again once there is room',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'portal-full-'))
    try {
      const script = 'mount -t tmpfs -o size=2m tmpfs "$1" && exec "$2" "$3" "$1/portal.db"'
      const args = ['-rm', 'sh', '-c', script, 'sh', folder, process.execPath, filler]
      const told = JSON.parse(execFileSync('unshare', args, { encoding: 'utf8' })) as Record<string, unknown>
      const written = told['written'] as number
      expect(written).toBeGreaterThan(10)
      expect(told).toEqual({
        written,
        code: 'store_full',
        full: [written, written, written],
        after: 'applied',
        later: [written + 1, written + 1, written + 1],
      })
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
