// A small training, whose every part a careless checkpoint loses: shared weights, a seeded generator, a log.
import { job } from '../../../sdk/node/index.js'

const weights = new Float64Array(20_000)
const model = { weights, first: weights.subarray(0, 4), tied: null }
model.tied = model.first
const names = new Map([['weights', weights]])
const log = []
const state = await job.state({ step: 0, model, names, log, random: job.random(7), last: null })

const steps = Number(process.env.STEPS ?? 12)
for (const step of job.steps(state, 'step', steps)) {
  const value = state.random.next()
  weights[step] = value
  log.push(value)
  state.last = { step, previous: state.last?.step ?? null }
  job.progress(step + 1, steps)
  if (process.env.PAUSE) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(process.env.PAUSE))
}
console.log(
  JSON.stringify({
    log: state.log,
    first: [...model.tied],
    same: state.names.get('weights') === weights,
    last: state.last,
  }),
)
