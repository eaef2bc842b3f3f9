import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Side, type Carried } from './graph/testing.ts'
import { Job } from './job.js'

/** A little program: nested loops over a state of its own, whose trace depends on all of it. */
interface Program {
  readonly outer: number
  readonly inner: number
  readonly from: number
}
interface State {
  outer: number
  inner: number
  sum: number
  seen: Map<string, number[]>
  last: { at: [number, number] } | null
}
const fresh = ({ from }: Program): State => ({ outer: from, inner: 0, sum: 1, seen: new Map(), last: null })

/** Runs the program, with a save at each safe point. */
const run = (program: Program, from: Carried | null): { saves: Carried[]; trace: string } => {
  const side = new Side(fresh(program))
  if (from) expect(side.restore(from)).toEqual([])
  const { state } = side
  const { seen } = state
  const saves: Carried[] = []
  const job = new Job()
  // as if something were asked at every turn
  job.asked[0] = 1
  job.stop = () => void saves.push(side.carried())
  for (const outer of job.steps(state, 'outer', program.outer)) {
    for (const inner of job.steps(state, 'inner', program.inner)) {
      state.sum = (state.sum * 31 + outer * 7 + inner) % 1_000_003
      seen.set(`${outer}`, [...(seen.get(`${outer}`) ?? []), state.sum])
      state.last = { at: [outer, inner] }
    }
    state.inner = 0
  }
  return { saves, trace: JSON.stringify([state, [...seen]]) }
}

test('K-PY-6 saved at any turn of any nested loops, the resumed trace equals the uninterrupted one', () => {
  const programs = fc.record({
    outer: fc.integer({ min: 0, max: 4 }),
    inner: fc.integer({ min: 0, max: 4 }),
    from: fc.integer({ min: 0, max: 5 }),
  })
  fc.assert(
    fc.property(programs, (program) => {
      const whole = run(program, null)
      const outers = Math.max(0, program.outer - program.from)
      expect(whole.saves).toHaveLength(outers + 1 + outers * (program.inner + 1))
      for (const [turn, save] of whole.saves.entries()) {
        const resumed = run(program, save)
        expect(resumed.trace).toBe(whole.trace)
        // what is saved at the first turn after a resume is what was resumed from
        expect(resumed.saves[0]?.digest, `turn ${turn}`).toBe(save.digest)
      }
    }),
    { numRuns: 40 },
  )
})

test('a loop left early may be gone on with, and ends where it stood', () => {
  const job = new Job()
  const state = { step: 0 }
  for (const step of job.steps(state, 'step', 10)) if (step === 3) break
  expect(state.step).toBe(3)
  expect(job.loops).toBe(0)
  expect([...job.steps(state, 'step', 6)]).toEqual([3, 4, 5])
  expect(state.step).toBe(6)
  expect([...job.steps(state, 'step', 6)]).toEqual([])
})

test('job.steps says what it was given wrong', () => {
  const job = new Job()
  expect(() => job.steps({ step: 0.5 }, 'step', 3)).toThrow('state.step is 0.5, not a whole number')
  expect(() => job.steps({}, 'step', 3)).toThrow('state.step is undefined')
  expect(() => job.steps({ step: 0 }, 'step', Number.NaN)).toThrow('number of steps')
})
