// The same as job.py for the Node SDK.
import net from 'node:net'
import { job } from '../../../sdk/node/index.js'

const weights = new Float64Array(64)
const model = { weights, momentum: new Float64Array(64) }
const big = new Uint8Array(700_000)
const chooser = job.random(7)
const state = await job.state({ step: 0, model, alias: weights, chooser, big, trace: [], sock: null })
if (state.alias !== weights || state.model.weights !== weights || state.big !== big)
  throw new Error('not restored in place')

console.log('begin', state.step)
const pause = new Int32Array(new SharedArrayBuffer(4))
for (const step of job.steps(state, 'step', 30)) {
  for (let i = 0; i < weights.length; i++) {
    model.momentum[i] = 0.9 * model.momentum[i] + chooser.next()
    weights[i] -= (0.1 / (1 + step)) * model.momentum[i]
  }
  big[step * 20_000] = step + 1
  state.trace.push(step)
  job.progress(step + 1, 30)
  if (process.env.OPEN_SOCKET) state.sock ??= new net.Socket()
  Atomics.wait(pause, 0, 0, Number(process.env.PAUSE ?? 0) * 1000)
}
console.log(
  'end',
  weights.reduce((a, b) => a + b),
  big.reduce((a, b) => a + b),
  state.trace.join(),
)
process.exit()
