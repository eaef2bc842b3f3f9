import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lostItsSave, titleOf, Trial, type Fault } from './faults.ts'
import { Installation } from './support.ts'

let portal: Installation
beforeAll(async () => void (portal = await Installation.open()))
// that no machine, folder or process is left over is looked at here
afterAll(() => portal.close())

const steps = ['probe', 'target', 'hold', 'restore', 'promise', 'seal', 'committed']
const ofSource = steps.flatMap((at): readonly Fault[] => [
  { at, party: 'control plane' },
  { at, party: 'agent', of: 'source' },
  { at, party: 'keeper', of: 'source' },
  { at, party: 'job', of: 'source' },
])
// before it restores, the target has an agent and nothing else
const ofTarget = ['promise', 'seal', 'committed'].flatMap((at): readonly Fault[] => [
  { at, party: 'agent', of: 'target' },
  { at, party: 'keeper', of: 'target' },
  { at, party: 'job', of: 'target' },
])
const others: readonly Fault[] = [
  { at: 'restore', party: 'agent', of: 'target' },
  { at: 'hold', party: 'SDK', of: 'source' },
  { at: 'promise', party: 'SDK', of: 'target' },
  { at: 'target', party: 'practice cloud' },
  { at: 'committed', party: 'practice cloud' },
]

describe('J-SAFE-1 J-SAFE-2 a move is finished or undone, whoever is killed at any step of it', () => {
  test.each([...ofSource, ...ofTarget, ...others].map((fault) => [titleOf(fault), fault] as const))(
    '%s',
    async (_title, fault) => {
      const trial = await Trial.begin(portal)
      await portal.client.move({ params: { ref: trial.job.id }, body: { on: 'practice/south-1' } })
      await trial.job.step(fault.at)
      await trial.strike(fault)
      const view = await trial.rest()
      const ofJob = ['keeper', 'job', 'SDK'].includes(fault.party)
      // who waits on one machine while the other one's job dies, runs on; the job itself is lost only with the one that runs
      expect(view.state).toBeOneOf(ofJob ? ['running', 'suspended', 'failed'] : ['running'])
      expect(lostItsSave(view, fault)).toBe(false)
      await trial.finish(view)
      if (!ofJob) await trial.wasSeamless()
    },
  )
})
