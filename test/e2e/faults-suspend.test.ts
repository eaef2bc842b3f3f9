import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lostItsSave, titleOf, Trial, type Fault } from './faults.ts'
import { Installation, type Party } from './support.ts'

let portal: Installation
beforeAll(async () => void (portal = await Installation.open()))
// that no machine, folder or process is left over is looked at here
afterAll(() => portal.close())

const parties: readonly Party[] = ['control plane', 'agent', 'keeper', 'job']
const faults = [
  ...['probe', 'hold', 'promise', 'seal', 'committed'].flatMap((at) => parties.map((party): Fault => ({ at, party }))),
  ...['probe', 'hold', 'promise'].map((at): Fault => ({ at, party: 'SDK' })),
]

describe('J-SAFE-3 J-SAFE-2 a suspension is finished or undone, whoever is killed at any step of it', () => {
  test.each(faults.map((fault) => [titleOf(fault), fault] as const))('%s', async (_title, fault) => {
    const trial = await Trial.begin(portal)
    await portal.client.suspend({ params: { ref: trial.job.id } })
    await trial.job.step(fault.at)
    await trial.strike(fault)
    const view = await trial.rest()
    const survives = fault.party === 'control plane' || fault.party === 'agent'
    expect(view.state).toBeOneOf(survives ? ['suspended', 'running'] : ['suspended', 'failed'])
    expect(lostItsSave(view, fault)).toBe(false)
    await trial.finish(view)
    if (survives) await trial.wasSeamless()
  })
})
