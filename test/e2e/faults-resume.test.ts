import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { titleOf, Trial, type Fault } from './faults.ts'
import { Installation } from './support.ts'

let portal: Installation
beforeAll(async () => void (portal = await Installation.open()))
// that no machine, folder or process is left over is looked at here
afterAll(() => portal.close())

const faults: readonly Fault[] = [
  { at: 'asked', party: 'control plane' },
  { at: 'placed', party: 'control plane' },
  { at: 'placed', party: 'practice cloud' },
  ...(['control plane', 'agent', 'keeper', 'job'] as const).flatMap((party): readonly Fault[] => [
    { at: 'restore', party, of: 'target' },
    { at: 'resumed', party },
  ]),
]

describe('J-RES-1 a resume goes through, or leaves the job suspended with its checkpoint, whoever is killed', () => {
  test.each(faults.map((fault) => [titleOf(fault), fault] as const))('%s', async (_title, fault) => {
    const trial = await Trial.begin(portal)
    await portal.client.suspend({ params: { ref: trial.job.id } })
    await trial.job.state('suspended')
    const { last } = trial.job
    await portal.client.resume({ params: { ref: trial.job.id } })
    if (fault.at === 'placed') await trial.job.event('resuming', last)
    if (fault.at === 'restore') await trial.hasJob(2)
    if (fault.at === 'resumed') await trial.job.event('resumed', last)
    await trial.strike(fault)
    const view = await trial.rest()
    const ofJob = fault.party === 'keeper' || fault.party === 'job'
    expect(view.state).toBeOneOf(ofJob ? ['running', 'suspended', 'failed'] : ['running', 'suspended'])
    expect(view.checkpoint).not.toBeNull()
    await trial.finish(view)
    if (!ofJob) await trial.wasSeamless()
  })
})
