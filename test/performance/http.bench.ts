/**
 * How late a followed log is: `node test/performance/http.bench.ts [SECONDS] [--json]`, 1,000 lines a second in ten-line writes,
 * followed by the real client in processes of its own. Goal: every line within 100 ms. Fails when it is missed.
 *
 * Seen on 2 cores that were busy with other work (load 4), Node 24.21:
 *
 *    1 following: median 0.2 ms, 99% within 2.4 ms, all within 4.5 ms, 0.02 cores
 *   10 following: median 0.7 ms, 99% within 4.5 ms, all within 14.7 ms, 0.04 cores
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, logBytes } from '../../src/contract/client.ts'
import type { LogPiece } from '../../src/control/http/api.ts'
import { createMemory, jobView, serveMemory, token } from '../../src/control/http/testing.ts'
import { atMost, numbers, quantile, rounded, tell, told, type Row } from './rows.ts'

const goalMs = 100
/** One clock for all processes of this machine, in parts of a ms. */
const now = () => performance.timeOrigin + performance.now()

if (process.argv[2] === 'follow') await follow(process.argv[3] as string)
else await serve(numbers()[0] ?? 10)

/** The reader's side: every line tells when it was written. */
async function follow(url: string): Promise<void> {
  const late: number[] = []
  let rest = ''
  for await (const event of createClient({ url, token }).followLog({ params: { ref: 'loud' } })) {
    if (event.event !== 'log') break
    const read = now()
    const lines = (rest + logBytes(event.data).toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) late.push(read - Number(line.slice(0, line.indexOf(' '))))
  }
  const figures = [late.length, quantile(late, 0.5), quantile(late, 0.99), quantile(late, 1)]
  process.send?.(figures, () => process.disconnect())
}

async function serve(seconds: number): Promise<void> {
  const memory = createMemory()
  const lines: Buffer[] = []
  let ended = false
  const followed = { count: 0 }
  let more = Promise.withResolvers<void>()
  const wake = () => {
    more.resolve()
    more = Promise.withResolvers<void>()
  }
  const followLog = async function* (_ref: string, _from: unknown, signal: AbortSignal): AsyncGenerator<LogPiece> {
    followed.count++
    let offset = 0
    for (let next = 0; !signal.aborted;) {
      const bytes = Buffer.concat(lines.slice(next, next + 400))
      next = Math.min(next + 400, lines.length)
      if (bytes.length > 0) {
        yield { is: 'log', token: 1, offset, bytes }
        offset += bytes.length
      } else if (ended) {
        yield { is: 'end', state: 'succeeded', exit: null, why: null, resumableUntil: null }
        return
      } else await more.promise
    }
  }
  const served = await serveMemory({ api: { ...memory.api, followLog }, verifyAnswers: false })
  memory.memory.jobs.set('loud', jobView('loud', 'loud', ['a']))

  const rows: Row[] = []
  for (const followers of [1, 10]) {
    lines.length = 0
    ended = false
    followed.count = 0
    const children = Array.from({ length: followers }, () =>
      fork(import.meta.filename, ['follow', served.server.url], { stdio: 'inherit' }),
    )
    const answers = children.map(async (child) => (await once(child, 'message'))[0] as number[])
    while (followed.count < followers) await sleep(10)
    const cpu = process.cpuUsage()
    const begun = performance.now()
    for (let tick = 0; tick < seconds * 100; tick++) {
      for (let n = 0; n < 10; n++) lines.push(Buffer.from(`${now()} `.padEnd(99, 'x') + '\n'))
      wake()
      await sleep(Math.max(0, begun + (tick + 1) * 10 - performance.now()))
    }
    ended = true
    wake()
    const figures = await Promise.all(answers)
    const { user, system } = process.cpuUsage(cpu)
    const cores = (user + system) / 1000 / (performance.now() - begun)
    const count = figures.reduce((sum, [lines = 0]) => sum + lines, 0)
    const worst = (at: number) => Math.max(...figures.map((figure) => figure[at] ?? Infinity))
    const [median, late, latest] = [1, 2, 3].map((at) => worst(at))
    const whole = count === followers * seconds * 1000
    const whose = `1,000 lines a second over HTTP, ${followers} following`
    rows.push(
      {
        what: `${whose}: each once`,
        seen: `${count} of ${followers * seconds * 1000}`,
        goal: 'all',
        ok: whole,
      },
      atMost(`${whose}: all within`, latest ?? Infinity, goalMs, 'ms'),
      told(`${whose}: 99 of 100 within`, `${rounded(late ?? Infinity)} ms (median ${rounded(median ?? Infinity)} ms)`),
      told(`${whose}: server, of a core`, `${(cores * 100).toFixed(0)} %`),
    )
  }
  await served.close()
  tell(rows)
}
