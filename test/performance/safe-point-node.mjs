// What a turn of `job.steps` costs a job at which nothing is asked, against a bare loop. Goal: 0.05 µs.
import { job } from '../../sdk/node/index.js'

const turns = 5_000_000
const pairs = 7
const state = { step: 0, sum: 0 }

const bare = () => {
  for (let step = 0; step < turns; step++) {
    state.step = step
    state.sum += step & 7
  }
}
const stepped = () => {
  state.step = 0
  for (const step of job.steps(state, 'step', turns)) state.sum += step & 7
}
/** @param {() => void} run */
const nanoseconds = (run) => {
  const began = performance.now()
  run()
  return ((performance.now() - began) * 1e6) / turns
}

bare()
stepped()
const differences = []
const whole = []
for (let pair = 0; pair < pairs; pair++) {
  const without = nanoseconds(bare)
  const turn = nanoseconds(stepped)
  whole.push(turn)
  differences.push(turn - without)
}
/** @param {number[]} values */
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]

console.log(
  JSON.stringify({
    what: 'safe point, Node',
    node: process.version,
    turn_ns: Number(median(whole).toFixed(1)),
    over_bare_loop_ns: Number(median(differences).toFixed(1)),
    goal_ns: 50,
  }),
)
