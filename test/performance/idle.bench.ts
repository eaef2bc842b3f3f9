/**
 * What running jobs cost while nothing happens: `node test/performance/idle.bench.ts [JOBS] [SECONDS] [--json]`. Real jobs
 * (`sleep`, 0.01 CPUs each) on a control plane, an agent and keepers of their own; CPU as the kernel counts it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { atMost, numbers, tell, told, type Row } from './rows.ts'
import { Stage } from './stage.ts'
import { below, commandOf, cpuOf, memoryOf } from './usage.ts'

const [jobs = 100, seconds = 60] = numbers()
const settled_ms = 15_000

const stage = new Stage()
const rows: Row[] = []
try {
  await stage.portal('run', '--no-workdir', '--', 'true')
  const client = stage.client()
  const begun = performance.now()
  for (let n = 0; n < jobs; n++)
    await client.createJob({
      body: { command: ['sleep', '3600'], needs: { cpus: 0.01, memoryBytes: 8 * 1024 * 1024 }, on: 'this-machine' },
    })
  const running = async (): Promise<number> =>
    (await client.jobs({})).jobs.filter(({ state }) => state === 'running').length
  while ((await running()) < jobs || keepers().length < jobs) {
    if (performance.now() - begun > 120_000) throw new Error(`of ${jobs} jobs only ${await running()} run`)
    await sleep(200)
  }
  rows.push(
    told(`${jobs} jobs started, one after another`, `${((performance.now() - begun) / jobs).toFixed(1)} ms each`),
  )

  await sleep(settled_ms)
  const before = used()
  const from = performance.now()
  await sleep(seconds * 1000)
  const after = used()
  const elapsed = performance.now() - from
  const share = (who: keyof typeof before): number => ((after[who] - before[who]) / elapsed) * 100
  const many = `with ${jobs} jobs running idle`
  rows.push(
    atMost(
      `control plane, of a core ${many}`,
      share('controlPlane'),
      2,
      '%',
      'reports with a sample of each job come every few seconds',
    ),
    told(
      `agent, of a core ${many}`,
      `${share('agent').toFixed(2)} %`,
      'each job is measured every 5 s and looked at each second',
    ),
    told(
      `keepers, of a core ${many}`,
      `${share('keepers').toFixed(2)} %`,
      'each looks at its deadline once a second, and `sleep 1` is a program',
    ),
    told('control plane, resident', `${(memoryOf(stage.controlPlane).resident / 1024).toFixed(0)} MB`),
    told('agent, resident', `${(memoryOf(stage.agent).resident / 1024).toFixed(0)} MB`),
  )
} finally {
  await stage.clear()
}
tell(rows)

function keepers(): readonly number[] {
  return below(stage.agent).filter((pid) => /keeper-\w+\.sh keep /.test(commandOf(pid)))
}

function used() {
  return {
    controlPlane: cpuOf(stage.controlPlane),
    agent: cpuOf(stage.agent),
    keepers: keepers().reduce((sum, pid) => sum + cpuOf(pid), 0),
  }
}
