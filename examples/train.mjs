/**
 * A real training in plain JavaScript, small enough to watch: a network learns two intertwined spirals.
 *
 *     portal run -- node examples/train.mjs
 *
 * The same as train.py: momentum, a learning rate schedule, a random state, an averaged copy of the weights. What makes up
 * the state is said once, in `job.state`, and the loop is a `job.steps`.
 */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { job } from 'portal/sdk'

const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '1500' },
    hidden: { type: 'string', default: '24' },
    seed: { type: 'string', default: '7' },
    /** seconds that a step takes at least, to watch it */
    pace: { type: 'string', default: '0' },
  },
})
const steps = Number(values.steps)
const hidden = Number(values.hidden)
const pace_ms = Number(values.pace) * 1000

const random = job.random(values.seed)
const gauss = (spread) => spread * Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())

/** Two spirals, one turned against the other; the label says which. */
const data = Array.from({ length: 240 }, (_, i) => {
  const label = i % 2
  const along = 0.4 + (2.8 * (i >> 1)) / 120
  const angle = along * 2.2 + Math.PI * label
  return [(along * Math.cos(angle)) / 3 + gauss(0.02), (along * Math.sin(angle)) / 3 + gauss(0.02), label]
})

// one row of three weights for each hidden unit, then the outer weights and their bias
const weights = Float64Array.from({ length: 4 * hidden + 1 }, (_, i) =>
  gauss(i < 3 * hidden ? 1.5 : 1 / Math.sqrt(hidden)),
)
const state = await job.state({
  step: 0,
  weights,
  velocity: new Float64Array(weights.length),
  average: Float64Array.from(weights),
  schedule: { at: 0, peak: 0.25, warmUp: Math.floor(steps / 20) },
  random,
  loss: 0,
})

const nextRate = (schedule) => {
  schedule.at++
  if (schedule.at <= schedule.warmUp) return (schedule.peak * schedule.at) / schedule.warmUp
  const done = (schedule.at - schedule.warmUp) / Math.max(1, steps - schedule.warmUp)
  return schedule.peak * 0.5 * (1 + Math.cos(Math.PI * Math.min(1, done)))
}

const trainStep = (rate) => {
  const { velocity, average } = state
  const gradient = new Float64Array(weights.length)
  const active = new Float64Array(hidden)
  let loss = 0
  for (let n = 0; n < 32; n++) {
    const [px, py, label] = data[random.integer(data.length)]
    const x = px + gauss(0.01)
    const y = py + gauss(0.01)
    let total = weights[4 * hidden]
    for (let i = 0; i < hidden; i++) {
      active[i] = Math.tanh(weights[3 * i] * x + weights[3 * i + 1] * y + weights[3 * i + 2])
      total += weights[3 * hidden + i] * active[i]
    }
    const guess = 1 / (1 + Math.exp(-Math.max(-30, Math.min(30, total))))
    loss -= Math.log(label === 1 ? guess : 1 - guess)
    const error = (guess - label) / 32
    for (let i = 0; i < hidden; i++) {
      gradient[3 * hidden + i] += error * active[i]
      const back = error * weights[3 * hidden + i] * (1 - active[i] ** 2)
      gradient[3 * i] += back * x
      gradient[3 * i + 1] += back * y
      gradient[3 * i + 2] += back
    }
    gradient[4 * hidden] += error
  }
  for (let i = 0; i < weights.length; i++) {
    velocity[i] = 0.9 * velocity[i] - rate * gradient[i]
    weights[i] += velocity[i]
    average[i] += 0.01 * (weights[i] - average[i])
  }
  return loss / 32
}

for await (const step of job.stepsAsync(state, 'step', steps)) {
  const began = performance.now()
  const rate = nextRate(state.schedule)
  const loss = trainStep(rate)
  state.loss = step === 0 ? loss : 0.98 * state.loss + 0.02 * loss
  job.progress(step + 1, steps)
  if ((step + 1) % (Math.floor(steps / 10) || 1) === 0)
    console.log(
      `step ${String(step + 1).padStart(5)}   loss ${state.loss.toFixed(6)}   rate ${rate.toFixed(4)}   attempt ${job.attempt}`,
    )
  if (pace_ms > 0) await sleep(Math.max(0, pace_ms - (performance.now() - began)))
}

const numbers = Float64Array.of(...state.weights, ...state.average, state.loss)
console.log(`final loss ${state.loss}`)
console.log(`final weights sha256:${createHash('sha256').update(numbers).digest('hex')}`)
