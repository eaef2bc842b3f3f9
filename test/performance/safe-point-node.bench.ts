/**
 * What a turn of `job.steps` costs a job at which nothing is asked, against a bare loop:
 * `node test/performance/safe-point-node.bench.ts [--json]`.
 */
import { job } from '../../sdk/node/index.js'
import { atMost, median, tell, told } from './rows.ts'

const turns = 5_000_000
const pairs = 9
const state = { step: 0, sum: 0 }

const bare = (): void => {
  for (let step = 0; step < turns; step++) {
    state.step = step
    state.sum += step & 7
  }
}
const stepped = (): void => {
  state.step = 0
  for (const step of job.steps(state, 'step', turns)) state.sum += step & 7
}
const nanoseconds = (run: () => void): number => {
  const began = performance.now()
  run()
  return ((performance.now() - began) * 1e6) / turns
}

bare()
stepped()
const differences: number[] = []
const whole: number[] = []
for (let pair = 0; pair < pairs; pair++) {
  const without = nanoseconds(bare)
  const turn = nanoseconds(stepped)
  whole.push(turn)
  differences.push(turn - without)
}
tell([
  atMost('safe point, Node: a turn of job.steps() over one of a bare loop', median(differences), 50, 'ns'),
  told('safe point, Node: the whole turn', `${median(whole).toFixed(1)} ns`),
])
