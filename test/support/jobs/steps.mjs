// The same as steps.py for the Node SDK.
import { randomBytes } from 'node:crypto'
import { existsSync, openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { job } from 'portal/sdk'

const trace = openSync(process.env.TRACE, 'a', 0o600)
const tell = (word, step) => writeSync(trace, `${word} ${job.attempt} ${step} ${process.hrtime.bigint() / 1000n}\n`)

const state = await job.state({
  step: 0,
  x: 1,
  ballast: new Uint8Array(randomBytes(Number(process.env.BALLAST ?? 1000))),
})
tell('begin', state.step)
const pause = Number(process.env.PAUSE ?? '0.01') * 1000
for await (const step of job.stepsAsync(state, 'step', 1_000_000)) {
  state.x = Number((BigInt(state.x) * 1103515245n + 12345n) % 2147483648n)
  if (state.ballast.length > 0) state.ballast[(step * 4099) % state.ballast.length] = state.x % 256
  writeSync(1, `step ${step} x ${state.x}\n`)
  tell('step', step)
  await sleep(pause)
  if (existsSync(process.env.GATE)) break
}
tell('end', state.step)
writeSync(1, `done ${state.x} ${state.ballast.reduce((a, b) => a + b, 0)}\n`)
