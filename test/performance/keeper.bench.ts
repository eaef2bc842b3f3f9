/**
 * What a keeper costs a job: `node test/performance/keeper.bench.ts [JOBS] [--json]`. Real keepers of `true` against `true`
 * alone, in interleaved pairs; then the memory of keepers of `sleep`, taken together.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeCgroups, noCgroups, removeCgroups } from '../../src/agent/keeper/cgroup.ts'
import { probeConfinement } from '../../src/agent/keeper/confine.ts'
import {
  installKeeper,
  isOver,
  keeperOf,
  keptOf,
  killAll,
  firstOf,
  layOut,
  startKeeper,
  writeDeadline,
  type KeeperFolder,
} from '../../src/agent/keeper/index.ts'
import { atMost, median, numbers, told, tell, type Row } from './rows.ts'
import { below, commandOf, cpuOf, memoryOf } from './usage.ts'

const [jobs = 40] = numbers()
const folder = mkdtempSync(join(tmpdir(), 'portal-bench-'))
const confinement = await probeConfinement()
const script = installKeeper(folder)
let made = 0

const begin = (command: readonly string[], over: () => void): KeeperFolder => {
  const name = `bench-${process.pid}-${made++}`
  const keeper = {
    folder: join(folder, name),
    cgroups: confinement.confines === 'none' ? noCgroups : makeCgroups(name),
  }
  const work = join(keeper.folder, 'work')
  mkdirSync(work, { recursive: true })
  writeDeadline(keeper.folder, 'never')
  layOut(keeper.folder)
  startKeeper({ script, keeper, confinement, workdir: work, command, env: { PATH: process.env['PATH'] ?? '' } }, over)
  return keeper
}

/** Wall time and CPU of all that runs below, ms. */
const measured = async (act: () => Promise<unknown>): Promise<{ wall: number; cpu: number }> => {
  const cpu = process.cpuUsage()
  const before = cpuOf(process.pid)
  const started = performance.now()
  await act()
  const wall = performance.now() - started
  const { user, system } = process.cpuUsage(cpu)
  return { wall, cpu: cpuOf(process.pid) - before - (user + system) / 1000 }
}

const kept = async (): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  // a keeper outlives whoever started it, so that nothing else keeps this process waiting
  const waiting = setInterval(() => {}, 1000)
  const keeper = begin(['true'], resolve)
  await promise
  clearInterval(waiting)
  const { is } = keptOf(keeper.folder)
  if (is !== 'exit') throw new Error(`the keeper of true says ${is}`)
  removeCgroups(keeper.cgroups)
}
const bare = async (): Promise<void> => void spawnSync('true')

const rows: Row[] = []
const running: KeeperFolder[] = []
try {
  const seen = { kept: { wall: [] as number[], cpu: 0 }, bare: { wall: [] as number[], cpu: 0 } }
  for (let n = -2; n < jobs; n++)
    for (const [name, act] of [
      ['kept', kept],
      ['bare', bare],
    ] as const) {
      const { wall, cpu } = await measured(act)
      if (n < 0) continue
      seen[name].wall.push(wall)
      seen[name].cpu += cpu
    }
  const limits =
    'eight programs are executed: sh, flock, setpriv, env, unshare, setsid, sh, and the first sleep; each takes 0.7 ms, the namespaces 2 ms'
  rows.push(
    atMost(
      'keeper: time from start to end, over `true` alone',
      median(seen.kept.wall) - median(seen.bare.wall),
      10,
      'ms',
      limits,
    ),
    atMost('keeper: CPU of a job, over `true` alone', (seen.kept.cpu - seen.bare.cpu) / jobs, 10, 'ms'),
  )

  for (let n = 0; n < jobs; n++) running.push(begin(['sleep', '600'], () => {}))
  while (running.some(({ folder: one }) => keptOf(one).is !== 'begun')) await sleep(20)
  await sleep(1500)
  const keepers = running.map((keeper) => keeperOf(keeper.folder)?.pid ?? 0)
  const isJob = (pid: number): boolean => commandOf(pid).startsWith('sleep 600')
  const memory = keepers.map((pid) => {
    const parts = [pid, ...below(pid, isJob)].map((one) => {
      try {
        return memoryOf(one)
      } catch {
        return { resident: 0, share: 0, own: 0 } // a tick of its clock, over meanwhile
      }
    })
    const sum = (what: 'resident' | 'share' | 'own') => parts.reduce((all, part) => all + part[what], 0) / 1024
    return { resident: sum('resident'), share: sum('share'), own: sum('own') }
  })
  const of = (what: 'resident' | 'share' | 'own') => median(memory.map((one) => one[what]))
  rows.push(
    atMost(`keeper: memory, pages shared by the ${jobs} split among them`, of('share'), 3, 'MB'),
    told('keeper: memory that is its own alone', `${of('own').toFixed(1)} MB`),
    told(
      'keeper: resident, shared pages counted for each of its processes',
      `${of('resident').toFixed(1)} MB`,
      'the same pages of sh, libc, unshare and sleep are counted up to four times for each keeper',
    ),
  )

  const before = keepers.reduce((sum, pid) => sum + cpuOf(pid), 0)
  const started = performance.now()
  await sleep(10_000)
  const share = (keepers.reduce((sum, pid) => sum + cpuOf(pid), 0) - before) / (performance.now() - started)
  rows.push(
    told(
      'keeper: of a core, while its job runs',
      `${((share / jobs) * 100).toFixed(2)} %`,
      'it looks at the deadline each second, and `sleep 1` is a program',
    ),
  )
} finally {
  for (const keeper of running) {
    const first = firstOf(keeper.folder)
    while (!isOver(keeper, first)) {
      killAll(keeper, first)
      await sleep(20)
    }
    removeCgroups(keeper.cgroups)
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
tell(rows)
