import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lostItsSave, titleOf, Trial, type Fault } from './faults.ts'
import { Installation } from './support.ts'

let portal: Installation
beforeAll(async () => void (portal = await Installation.open()))
// that no machine, folder or process is left over is looked at here
afterAll(() => portal.close())

/** What may come of it: where the job runs then, or that it waits for a person. */
const faults: readonly (readonly [Fault, readonly string[]])[] = [
  [{ at: 'hold', party: 'machine', of: 'source' }, ['suspended', 'failed']],
  // the save is in the chain already. Its machine may have told that its job was killed before it was itself
  [{ at: 'restore', party: 'machine', of: 'source' }, ['suspended', 'running 2', 'failed']],
  [{ at: 'restore', party: 'machine', of: 'target' }, ['running 1']],
  [{ at: 'committed', party: 'machine', of: 'target' }, ['suspended']],
]

/** They wait for a provider's word most of the time, each for its own machine: together they take as long as one. */
describe.concurrent('J-LEASE-3 a machine that is taken without a word in the middle of a move', () => {
  test.each(faults.map(([fault, allowed]) => [titleOf(fault), fault, allowed] as const))(
    '%s',
    async (_title, fault, allowed) => {
      const trial = await Trial.begin(portal)
      await portal.client.move({ params: { ref: trial.job.id }, body: { on: 'practice/south-1' } })
      await trial.job.step(fault.at)
      await trial.strike(fault)
      const view = await trial.rest()
      expect(view.state === 'running' ? `running ${view.attempt}` : view.state).toBeOneOf([...allowed])
      expect(lostItsSave(view, fault)).toBe(false)
      await trial.finish(view)
    },
  )
})
