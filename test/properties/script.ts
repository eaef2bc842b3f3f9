import fc from 'fast-check'
import { PortalError } from '../../src/contract/errors.ts'
import { isEnded } from '../../src/core/jobs/model.ts'
import { ModelledWorld } from './modelled-world.ts'
import { ownedOffer, rentedOffers } from './model-provider.ts'

/** Something that happens in a world, as plain data: a script that failed is kept as it was printed. */
export type Happening =
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'suspend' | 'resume' | 'two resumes' | 'move' | 'stop' | 'stop now' }
  | { readonly do: 'move to' | 'run at'; readonly on: string }
  | { readonly do: 'an agent lies' }
  | { readonly do: 'kill control plane'; readonly calls: number; readonly when: 'before' | 'after' }
  | {
      readonly do:
        | 'start control plane'
        | 'start another beside it'
        | 'cut a connection'
        | 'machine dies'
        | 'target dies'
        | 'processes are killed'
        | 'notice withdrawn'
        | 'machine is set back'
        | 'desk is set back'
    }
  | { readonly do: 'network down' | 'network slow' | 'messages doubled' | 'cloud blind'; readonly ms: number }
  | {
      readonly do:
        | 'desk cut off'
        | 'machine cut off'
        | 'machine pauses'
        | 'agent crashes'
        | 'target agent crashes'
        | 'notice'
        | 'notice at target'
      readonly ms: number
    }
  | { readonly do: 'carriable'; readonly is: boolean }
  | { readonly do: 'starts refused' | 'calls silent' | 'store fails' | 'answers unknown'; readonly count: number }

export interface Script {
  readonly seed: number
  readonly ttl: string
  readonly happens: readonly Happening[]
}

const simple = (...names: string[]) => fc.constantFrom(...names).map((name) => ({ do: name }) as Happening)
const ms = (name: string, min: number, max: number) =>
  fc.integer({ min, max }).map((length) => ({ do: name, ms: length }) as Happening)
const count = (name: string, max: number) =>
  fc.integer({ min: 1, max }).map((n) => ({ do: name, count: n }) as Happening)
const places = [...rentedOffers.map(({ id }) => id), ownedOffer.id]

/** What people ask for. */
const asked = fc.oneof(
  { weight: 3, arbitrary: simple('suspend') },
  { weight: 5, arbitrary: simple('resume', 'resume', 'two resumes') },
  { weight: 1, arbitrary: simple('move') },
  { weight: 8, arbitrary: fc.constantFrom(...places).map((on): Happening => ({ do: 'move to', on })) },
  { weight: 1, arbitrary: simple('stop', 'stop now') },
  { weight: 1, arbitrary: fc.constantFrom('cloud', 'desk').map((on): Happening => ({ do: 'run at', on })) },
)

/** What goes wrong. */
const fault = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.integer({ min: 1, max: 60 }), fc.constantFrom('before' as const, 'after' as const))
      .map(([calls, when]): Happening => ({ do: 'kill control plane', calls, when })),
  },
  { weight: 3, arbitrary: simple('start control plane') },
  { weight: 2, arbitrary: simple('start another beside it') },
  {
    weight: 2,
    arbitrary: simple('cut a connection', 'machine dies', 'target dies', 'processes are killed', 'notice withdrawn'),
  },
  { weight: 2, arbitrary: simple('machine is set back') },
  { weight: 2, arbitrary: ms('network down', 1000, 1_200_000) },
  { weight: 2, arbitrary: ms('network slow', 10_000, 300_000) },
  { weight: 2, arbitrary: ms('messages doubled', 10_000, 600_000) },
  { weight: 1, arbitrary: ms('cloud blind', 10_000, 1_200_000) },
  { weight: 2, arbitrary: ms('agent crashes', 0, 300_000) },
  { weight: 2, arbitrary: ms('machine pauses', 1000, 1_500_000) },
  { weight: 3, arbitrary: ms('machine cut off', 1000, 1_500_000) },
  { weight: 2, arbitrary: ms('target agent crashes', 0, 60_000) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(5000, 30_000, 120_000).map((length): Happening => ({ do: 'notice', ms: length })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(5000, 60_000).map((length): Happening => ({ do: 'notice at target', ms: length })),
  },
  { weight: 1, arbitrary: simple('an agent lies') },
  { weight: 2, arbitrary: fc.constantFrom(false, true, true, true).map((is): Happening => ({ do: 'carriable', is })) },
  { weight: 1, arbitrary: count('starts refused', 4) },
  { weight: 2, arbitrary: count('calls silent', 4) },
  { weight: 1, arbitrary: count('store fails', 20) },
  { weight: 1, arbitrary: count('answers unknown', 3) },
)

const passes = fc.oneof(
  { weight: 6, arbitrary: ms('pass', 0, 3000) },
  { weight: 6, arbitrary: ms('pass', 3000, 60_000) },
  { weight: 3, arbitrary: ms('pass', 60_000, 1_200_000) },
)

/** Most of what matters happens within the seconds of a move: so something is asked for, and soon after something goes wrong. */
const soon = fc.oneof(ms('pass', 0, 2000), ms('pass', 2000, 40_000))
const one = (name: string) => fc.constant({ do: name } as Happening)
const elsewhere = fc.constantFrom(...places).map((on): Happening => ({ do: 'move to', on }))
const leaves = fc.oneof(one('suspend'), elsewhere)
const goes = fc.oneof(
  ms('machine pauses', 700_000, 1_500_000),
  ms('machine cut off', 700_000, 1_500_000),
  ms('agent crashes', 700_000, 900_000),
)
/** What a line of safety is there for, as far as it takes several things at once to see it. */
const stories = fc.oneof(
  // a machine is given up while it lives, and the job goes on elsewhere
  fc.tuple(
    one('suspend'),
    ms('pass', 30_000, 60_000),
    one('resume'),
    ms('pass', 60_000, 90_000),
    elsewhere,
    ms('pass', 60_000, 120_000),
    fc.oneof(one('suspend'), ms('pass', 0, 5000)),
    ms('pass', 0, 20_000),
    goes,
    fc.oneof(ms('cloud blind', 700_000, 1_200_000), ms('pass', 0, 1000)),
    ms('pass', 700_000, 900_000),
    one('resume'),
    ms('pass', 60_000, 600_000),
    one('suspend'),
    ms('pass', 30_000, 300_000),
  ),
  // a machine is given up before it ever had a lease
  fc.tuple(
    ms('network slow', 60_000, 120_000),
    fc.constantFrom('cloud', 'desk').map((on): Happening => ({ do: 'run at', on })),
    ms('pass', 0, 60_000),
    ms('machine cut off', 700_000, 1_500_000),
    fc.oneof(one('stop now'), ms('pass', 0, 1000)),
    ms('pass', 200_000, 900_000),
  ),
  fc.tuple(
    ms('network slow', 60_000, 120_000),
    fc.constant({ do: 'run at', on: 'desk' } as Happening),
    ms('pass', 0, 40_000),
    one('stop now'),
    ms('pass', 0, 60_000),
  ),
  // answers cross while a move is decided
  fc.tuple(ms('network slow', 200_000, 300_000), leaves, ms('pass', 50_000, 250_000)),
  fc.tuple(
    ms('network slow', 100_000, 200_000),
    leaves,
    ms('pass', 5000, 60_000),
    simple('machine is set back', 'cut a connection'),
    ms('pass', 10_000, 60_000),
    fc.oneof(one('resume'), elsewhere),
  ),
  // the store of checkpoints is away when a chain is to be closed
  fc.tuple(
    fc.constant({ do: 'store fails', count: 40 } as Happening),
    leaves,
    ms('pass', 5000, 35_000),
    fc.oneof(
      { weight: 3, arbitrary: one('machine is set back') },
      { weight: 3, arbitrary: ms('notice at target', 60_000, 120_000) },
      { weight: 1, arbitrary: simple('start control plane', 'stop', 'machine dies') },
      { weight: 1, arbitrary: fc.oneof(ms('network down', 10_000, 120_000), ms('machine pauses', 60_000, 700_000)) },
    ),
    fc.oneof(ms('machine cut off', 30_000, 200_000), ms('pass', 0, 5000)),
    ms('pass', 60_000, 200_000),
    one('suspend'),
    ms('pass', 30_000, 60_000),
  ),
  // a suspension is committed while its source, held as is thought, runs on from an old image, unheard
  fc.tuple(
    fc.constant({ do: 'store fails', count: 40 } as Happening),
    one('suspend'),
    ms('pass', 8000, 30_000),
    one('machine is set back'),
    ms('machine cut off', 100_000, 300_000),
    ms('pass', 60_000, 200_000),
  ),
  // a machine stands still for longer than its lease, its agent is gone, and its cloud ends nothing
  fc.tuple(
    one('suspend'),
    ms('pass', 40_000, 60_000),
    one('resume'),
    ms('pass', 60_000, 90_000),
    fc.constant({ do: 'agent crashes', ms: 2_000_000 } as Happening),
    ms('machine pauses', 1_000_000, 1_200_000),
    fc.constant({ do: 'cloud blind', ms: 1_400_000 } as Happening),
    ms('pass', 700_000, 800_000),
    one('resume'),
    ms('pass', 400_000, 600_000),
  ),
  // an owned machine is left while it cannot be heard, and what was held there runs on
  fc.tuple(
    ms('pass', 20_000, 40_000),
    fc.constant({ do: 'move to', on: 'desk' } as Happening),
    ms('pass', 60_000, 100_000),
    fc.constant({ do: 'store fails', count: 40 } as Happening),
    fc.constant({ do: 'move to', on: rentedOffers[0]?.id ?? '' } as Happening),
    ms('pass', 20_000, 60_000),
    fc.constant({ do: 'desk cut off', ms: 900_000 } as Happening),
    ms('pass', 60_000, 100_000),
    one('desk is set back'),
    ms('pass', 30_000, 60_000),
  ),
  // a machine that was left comes back as it was, unheard, and saves before its lease is over
  fc.tuple(
    ms('pass', 30_000, 60_000),
    fc.constant({ do: 'move to', on: 'desk' } as Happening),
    ms('pass', 60_000, 120_000),
    fc.oneof(one('suspend'), fc.constant({ do: 'move to', on: rentedOffers[0]?.id ?? '' } as Happening)),
    ms('pass', 60_000, 120_000),
    fc.oneof(one('resume'), ms('pass', 0, 1000)),
    one('desk is set back'),
    fc.constant({ do: 'desk cut off', ms: 1_000_000 } as Happening),
    ms('pass', 400_000, 700_000),
    one('suspend'),
    ms('pass', 60_000, 120_000),
    one('resume'),
  ),
  // a start whose answer did not come, and that nobody wants any more
  fc.tuple(
    count('calls silent', 2),
    fc.constantFrom('cloud', 'desk').map((on): Happening => ({ do: 'run at', on })),
    simple('stop', 'start control plane'),
    ms('pass', 0, 30_000),
    one('stop'),
  ),
  // asked for one thing after the other
  fc.tuple(asked, ms('pass', 0, 500), asked, ms('pass', 0, 2000), asked),
)
const scene = fc.oneof(
  { weight: 2, arbitrary: fc.tuple(asked, soon, fault, soon, fault, passes) },
  { weight: 2, arbitrary: fc.tuple(fault, asked, soon, fault, passes) },
  {
    weight: 3,
    arbitrary: fc.tuple(ms('pass', 20_000, 60_000), elsewhere, soon, fault, soon, fault, ms('pass', 60_000, 300_000)),
  },
)

const happens = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: passes.map((one) => [one]) },
      { weight: 3, arbitrary: asked.map((one) => [one]) },
      { weight: 4, arbitrary: fault.map((one) => [one]) },
      { weight: 3, arbitrary: scene },
      { weight: 3, arbitrary: stories },
    ),
    { maxLength: 25, size: 'max' },
  )
  .map((parts) => parts.flat())

export const scripts: fc.Arbitrary<Script> = fc.record({
  seed: fc.nat(2 ** 31),
  ttl: fc.constantFrom('off', 'off', 'off', '40m'),
  happens,
})

const person = { person: 'a test' }
const jobsAtMost = 3

/**
 * Whoever asks at a moment when it is not possible is told so; that is an answer, not a failure. A control plane that is killed
 * meanwhile never answers.
 */
async function ask(world: ModelledWorld, what: () => Promise<unknown>): Promise<boolean> {
  let done = false
  what().then(
    () => (done = true),
    (error: unknown) => {
      if (!(error instanceof PortalError) && !String(error).includes('did not say')) world.truth.wrong(String(error))
    },
  )
  await world.pass(0)
  return done
}

async function happen(world: ModelledWorld, what: Happening): Promise<void> {
  const { plane, name } = world
  const now = world.clock.now()
  const resume = async (): Promise<void> => {
    if (plane && (await ask(world, () => plane.jobs.resume(name, { same: false, settings: {} }, person))))
      world.stopped.delete(world.jobIds.at(-1) ?? '')
  }
  switch (what.do) {
    case 'pass':
      return world.pass(what.ms)
    case 'suspend':
      return void (plane && (await ask(world, () => plane.jobs.suspend(name, person))))
    case 'resume':
      return resume()
    case 'two resumes': {
      if (!plane) return
      const won = await Promise.all(
        [1, 2].map(() => ask(world, () => plane.jobs.resume(name, { same: false, settings: {} }, person))),
      )
      if (won[0] && won[1]) world.truth.wrong('two resumes won')
      if (won[0] || won[1]) world.stopped.delete(world.jobIds.at(-1) ?? '')
      return
    }
    case 'move':
      return void (plane && (await ask(world, () => plane.jobs.move(name, {}, person))))
    case 'move to':
      return void (plane && (await ask(world, () => plane.jobs.move(name, { on: what.on }, person))))
    case 'stop':
    case 'stop now': {
      const id = world.jobIds.at(-1) ?? ''
      if (plane && (await ask(world, () => plane.jobs.stop(name, { now: what.do === 'stop now' }, person))))
        world.stopped.add(id)
      return
    }
    case 'run at':
      return world.jobIds.length < jobsAtMost ? world.run(what.on as 'cloud' | 'desk') : undefined
    case 'kill control plane':
      return world.killControlPlaneIn(what.calls, what.when)
    case 'start control plane':
      return world.startControlPlane()
    case 'start another beside it':
      return world.startControlPlane(true)
    case 'cut a connection':
      return (await world.busyMachine())?.cutConnection()
    case 'machine dies': {
      const machine = await world.busyMachine()
      return machine?.owned ? undefined : machine?.die()
    }
    case 'target dies':
      return world.idleMachine()?.die()
    case 'processes are killed':
      return (await world.busyMachine())?.killProcesses()
    case 'network down':
      return world.network.goDown(what.ms)
    case 'network slow':
      world.network.slow = { until: now + what.ms, atMost: Math.min(20_000, what.ms / 5) }
      return
    case 'messages doubled':
      world.network.doublesUntil = now + what.ms
      return
    case 'cloud blind':
      world.cloud.faults.blindUntil = now + what.ms
      return
    case 'agent crashes':
      return (await world.busyMachine())?.crashAgent(what.ms)
    case 'target agent crashes':
      return world.idleMachine()?.crashAgent(what.ms)
    case 'desk is set back':
      return world.machines.get('desk')?.setBack()
    case 'desk cut off':
      return world.machines.get('desk')?.cutOff(what.ms)
    case 'machine cut off':
      return (await world.busyMachine())?.cutOff(what.ms)
    case 'machine pauses':
      return (await world.busyMachine())?.pause(what.ms)
    case 'machine is set back':
      return (await world.busyMachine())?.setBack()
    case 'notice':
    case 'notice at target': {
      const machine = what.do === 'notice' ? await world.busyMachine() : world.idleMachine()
      if (!machine || machine.owned) return
      machine.noticed(what.ms)
      world.clock.after(what.ms, () => machine.isNoticed && machine.die())
      return
    }
    case 'notice withdrawn':
      return (await world.busyMachine())?.withdrawNotice()
    case 'carriable':
      world.carriable = what.is
      return
    case 'starts refused':
      world.cloud.faults.refuse = what.count
      return
    case 'calls silent':
      world.cloud.faults.silent = what.count
      return
    case 'an agent lies':
      return world.lie(world.idleMachine()?.agentId ?? 'desk')
    case 'store fails':
      world.storeFails = what.count
      return
    case 'answers unknown':
      world.checked.unknowns = what.count
  }
}

/** What holds at every moment, beside what the world and its store look at with every event. */
async function invariants(world: ModelledWorld): Promise<void> {
  const { truth } = world
  let owed = 0
  for (const job of await world.rows()) {
    if (!job) continue
    const attempts = await world.store.attemptsOf(job.id)
    for (const { offer, spent, committed } of attempts)
      if (offer.connection === 'cloud') owed += (spent ?? committed).micros
    if (job.state.is === 'suspended') {
      if (job.current !== null) truth.wrong(`${job.id} is suspended and has a current attempt`)
      if (job.base === null) truth.wrong(`${job.id} is suspended without a checkpoint`)
    }
    const current = attempts.find(({ token }) => token === job.current)
    if (job.current !== null && current?.state !== 'bound')
      truth.wrong(`the current attempt of ${job.id} is ${current?.state}`)
  }
  const connection = await world.store.get('connections', 'cloud')
  if (connection?.committedMicros !== owed)
    truth.wrong(`the connection has ${connection?.committedMicros} spent and committed, its rows add up to ${owed}`)
  for (const rowId of world.cloud.alive()) {
    const row = await world.store.get('attempts', rowId)
    if (!row || row.state === 'gone')
      truth.wrong(`the machine of ${rowId} lives, and its row is ${row?.state ?? 'not there'}`)
  }
}

/** With faults over, every job comes to rest within a bound, and nothing is left over. */
async function comesToRest(world: ModelledWorld): Promise<void> {
  Object.assign(world.cloud.faults, { refuse: 0, silent: 0, blindUntil: 0 })
  Object.assign(world.network, { downUntil: 0, doublesUntil: 0, slow: { until: 0, atMost: 5 } })
  world.storeFails = 0
  world.checked.unknowns = 0
  await world.startControlPlane()
  await world.pass(100 * 60_000)
  await invariants(world)
  if (world.truth.violations.length > 0) return
  const wrong = world.truth.wrong.bind(world.truth)
  for (const job of await world.rows()) {
    if (!job) continue
    if (!isEnded(job.state) && job.state.is !== 'suspended' && job.state.is !== 'running')
      wrong(`${job.id} does not come to rest: it is ${job.state.is}`)
    if (job.state.is === 'running' && job.state.unreachableSince !== null)
      wrong(`${job.id} is not heard, with all faults over`)
    if (job.state.is === 'running' && job.wish !== null)
      wrong(`${job.id} was asked to ${job.wish.to}, and nothing came of it`)
    if (job.state.is === 'running' && !world.truth.isExecuting(`${job.id}.${job.current}`))
      wrong(`${job.id} runs, but nothing of it executes`)
    if (world.stopped.has(job.id) && !isEnded(job.state)) wrong(`${job.id} was asked to stop, and is ${job.state.is}`)
    if (job.move !== null) wrong(`a move of ${job.id} is left open`)
    if (job.state.is === 'failed' && !/^(lost\.failed|expired|end\.)/.test(job.state.why.code))
      wrong(`${job.id} failed: ${job.state.why.code}`)
    if (job.state.is === 'failed' && job.state.why.code === 'lost.failed' && job.base !== null)
      wrong(`${job.id} is lost though it has a checkpoint`)
    for (const attempt of await world.store.attemptsOf(job.id)) {
      if (attempt.token === job.current) continue
      if (attempt.state !== 'gone') wrong(`attempt ${attempt.id} of a job that is ${job.state.is} is ${attempt.state}`)
      if (world.truth.isExecuting(attempt.id)) wrong(`attempt ${attempt.id} executes and is not current`)
    }
  }
  const due = await world.store.jobsDue(world.clock.now(), 10)
  if (due.length > 0)
    wrong(`${due.map(({ id, state }) => `${id} (${state.is})`).join(', ')} is due, and has been looked at`)
}

/** Plays a script in a world of its own. @returns what went wrong there */
export async function play({ seed, ttl, happens }: Script): Promise<readonly string[]> {
  const world = await ModelledWorld.open({ seed, ttl })
  try {
    for (const what of happens) {
      await happen(world, what)
      await invariants(world)
      if (world.truth.violations.length > 0) break
    }
    if (world.truth.violations.length === 0) await comesToRest(world)
    return world.truth.violations
  } finally {
    await world.close()
  }
}
