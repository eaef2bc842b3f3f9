import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isEnded } from '../../src/core/jobs/model.ts'
import { PortalError } from '../../src/contract/errors.ts'
import { ModelledWorld, offers } from './modelled-world.ts'

/** What the checker expects of a world, beside what the world writes down itself. */
interface Model {
  readonly step: number
}

type Command = fc.AsyncCommand<Model, ModelledWorld>

const command = (name: string, run: (world: ModelledWorld) => Promise<void>): Command => ({
  check: () => true,
  run: async (_, world) => {
    await run(world)
    await invariants(world)
  },
  toString: () => name,
})

const person = { person: 'a test' }
/**
 * Whoever asks at a moment when it is not possible is told so; that is an answer, not a failure. A control plane that is killed
 * meanwhile never answers.
 */
const ask = async (world: ModelledWorld, what: () => Promise<unknown>): Promise<void> => {
  what().catch((error: unknown) => {
    if (!(error instanceof PortalError)) world.violations.push(String(error))
  })
  await world.pass(0)
}

const alive = (world: ModelledWorld) => !world.controlPlaneIsDead

const commands = [
  fc
    .integer({ min: 1, max: 900 })
    .map((seconds) => command(`pass ${seconds} s`, (world) => world.pass(seconds * 1000))),
  fc.integer({ min: 0, max: 3000 }).map((ms) => command(`pass ${ms} ms`, (world) => world.pass(ms))),
  fc.constant(
    command(
      'suspend',
      async (world) => void (alive(world) && (await ask(world, () => world.jobs.suspend('job', person)))),
    ),
  ),
  fc.constant(
    command(
      'resume',
      async (world) =>
        void (
          alive(world) && (await ask(world, () => world.jobs.resume('job', { same: false, settings: {} }, person)))
        ),
    ),
  ),
  fc.constant(
    command('two resumes', async (world) => {
      if (!alive(world)) return
      await Promise.all(
        [1, 2].map(() => ask(world, () => world.jobs.resume('job', { same: false, settings: {} }, person))),
      )
    }),
  ),
  fc
    .constantFrom(...offers.map(({ id }) => id))
    .map((on) =>
      command(
        `move --on ${on}`,
        async (world) => void (alive(world) && (await ask(world, () => world.jobs.move('job', { on }, person)))),
      ),
    ),
  fc.constant(
    command(
      'move',
      async (world) => void (alive(world) && (await ask(world, () => world.jobs.move('job', {}, person)))),
    ),
  ),
  fc
    .tuple(fc.integer({ min: 1, max: 60 }), fc.constantFrom('before' as const, 'after' as const))
    .map(([calls, when]) =>
      command(`kill the control plane ${when} its ${calls}th call`, async (world) =>
        world.killControlPlaneIn(calls, when),
      ),
    ),
  fc.constant(command('start a control plane', (world) => world.startControlPlane())),
  fc.constant(command('cut the connection', async (world) => world.current()?.disconnect())),
  fc.integer({ min: 10, max: 900 }).map((seconds) =>
    command(`nobody is reachable for ${seconds} s`, async (world) => {
      world.reachable = false
      for (const { machine } of world.machines.values()) machine.disconnect()
      await world.pass(seconds * 1000)
      world.reachable = true
    }),
  ),
  fc.constant(command('a machine dies', async (world) => world.current()?.die())),
  fc.constantFrom(30, 120).map((seconds) =>
    command(`a notice of ${seconds} s`, async (world) => {
      const machine = world.current()
      machine?.notice(seconds * 1000)
      world.clock.after(seconds * 1000, () => machine?.die())
    }),
  ),
  fc.boolean().map((carriable) =>
    command(carriable ? 'the state can be carried' : 'the state cannot be carried', async (world) => {
      world.job.carriable = carriable
    }),
  ),
  fc.integer({ min: 1, max: 4 }).map((n) =>
    command(`${n} starts are refused`, async (world) => {
      world.refuse.starts = n
    }),
  ),
  fc.integer({ min: 1, max: 3 }).map((n) =>
    command(`${n} answers of starts are lost`, async (world) => {
      world.refuse.answers = n
    }),
  ),
]

/** What holds at every moment. */
async function invariants(world: ModelledWorld): Promise<void> {
  expect(world.violations).toEqual([])
  const job = await world.row()
  if (job?.state.is === 'suspended') {
    expect(job.current, 'a suspended job has no current attempt').toBeNull()
    expect(job.base, 'a suspended job can be resumed').not.toBeNull()
  }
}

/** With faults over, every job comes to rest within a bound, and nothing is left over. */
async function comesToRest(world: ModelledWorld): Promise<void> {
  world.refuse.starts = 0
  world.refuse.answers = 0
  await world.startControlPlane()
  await world.pass(4 * 3_600_000)
  await invariants(world)
  const job = await world.row()
  expect(
    job && (isEnded(job.state) || job.state.is === 'suspended' || job.state.is === 'running'),
    `at rest, not ${job?.state.is}`,
  ).toBe(true)
  expect(job?.move ?? null, 'no move is left open').toBeNull()
  for (const attempt of await world.attempts()) {
    const machine = world.machines.get(attempt.id)?.machine
    if (attempt.token === job?.current) continue
    expect(attempt.state, `attempt ${attempt.token} is settled`).toBe('gone')
    expect(machine?.alive ?? false, `the machine of attempt ${attempt.token} is gone`).toBe(false)
  }
  // with its faults over, a job that failed can only have lost its machine, its checkpoint or itself
  expect(job?.state.is === 'failed' ? job.state.why.code : 'end.').toMatch(/^(lost\.failed|expired|end\.)/)
}

const runs = Number(process.env.PORTAL_PROPERTY_RUNS ?? 60)

describe('moves, suspensions and resumes under faults', () => {
  test('J-SAFE-1 J-SAFE-2 J-SAFE-3 J-LEASE-3 J-RES-1 at most one attempt executes, nothing is lost or left over, whatever is killed when', async () => {
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { maxCommands: 25 }), async (given) => {
        const world = await ModelledWorld.open()
        try {
          await fc.asyncModelRun(() => ({ model: { step: 0 }, real: world }), given)
          await comesToRest(world)
        } finally {
          await world.close()
        }
      }),
      { numRuns: runs, endOnFailure: false },
    )
  }, 300_000)
})
