/**
 * How late a followed log is, on the whole way job → agent → control plane → `portal logs -f`:
 * `node test/performance/logs.bench.ts [SECONDS] [LINES_A_SECOND] [--json]`. Every line carries its number and when it was
 * written, by a clock that all processes of the machine share.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atMost, numbers, quantile, rounded, tell, told, type Row } from './rows.ts'
import { portal, Stage } from './stage.ts'
import { cpuOf } from './usage.ts'

const [seconds = 15, rate = 1000] = numbers()
const every_ms = 10

/** Waits until it is followed, then writes `rate` lines of 100 bytes a second, some every 10 ms. */
const writer = `
const now = () => process.hrtime.bigint()
const { writeSync } = require('node:fs')
const lines = ${seconds * rate}
let written = 0
setTimeout(() => {
  const begun = Number(now()) / 1e6
  const write = () => {
    const due = Math.min(lines, Math.floor(((Number(now()) / 1e6 - begun) / 1000) * ${rate}))
    let text = ''
    for (; written < due; written++) text += (written + ' ' + now() + ' ').padEnd(99, 'x') + '\\n'
    writeSync(1, text)
    if (written < lines) setTimeout(write, ${every_ms})
  }
  write()
}, 3000)
`

const stage = new Stage()
const rows: Row[] = []
try {
  writeFileSync(join(stage.work, 'writer.cjs'), writer)
  await stage.portal('run', '--detach', '--name', 'loud', '--on', 'this-machine', '--', process.execPath, 'writer.cjs')
  const follower = stage.start(portal, ['logs', '-f', 'loud'])
  const late: number[] = []
  let wrong = 0
  let rest = ''
  follower.stdout?.on('data', (bytes: Buffer) => {
    const read = process.hrtime.bigint()
    const lines = (rest + bytes.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [number, at] = line.split(' ')
      if (Number(number) !== late.length) wrong++
      late.push(Number(read - BigInt(at ?? 0)) / 1e6)
    }
  })
  const over = new Promise<unknown>((resolve) => follower.once('close', resolve))
  await sleep(4000)
  const before = [cpuOf(stage.controlPlane), cpuOf(stage.agent)]
  const from = performance.now()
  await sleep((seconds - 2) * 1000)
  const elapsed = performance.now() - from
  const [control, agent] = [cpuOf(stage.controlPlane), cpuOf(stage.agent)].map(
    (cpu, n) => ((cpu - (before[n] ?? 0)) / elapsed) * 100,
  )
  const code = await over
  if (code !== 0) throw new Error(`portal logs -f ended with ${String(code)}`)
  const lines = seconds * rate
  const missing = lines - late.length
  const how = `${rate} lines a second, job to \`portal logs -f\``
  rows.push(
    {
      what: `${how}: each once, in order`,
      seen: wrong === 0 && missing === 0 ? `${lines} of ${lines}` : `${late.length} of ${lines}, ${wrong} out of place`,
      goal: 'all',
      ok: wrong === 0 && missing === 0,
    },
    atMost(`${how}: 99 of 100 within`, quantile(late, 0.99), 100, 'ms'),
    told(`${how}: median`, `${rounded(quantile(late, 0.5))} ms`),
    told(`${how}: the latest`, `${rounded(quantile(late, 1))} ms`),
    told('control plane meanwhile, of a core', `${rounded(control ?? 0)} %`),
    told('agent meanwhile, of a core', `${rounded(agent ?? 0)} %`),
  )
} finally {
  await stage.clear()
}
tell(rows)
