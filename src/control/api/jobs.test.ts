import pino from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PortalError } from '../../contract/errors.ts'
import type { JobRequest } from '../../contract/schemas.ts'
import type { AttemptRecord, JobRecord } from '../../core/jobs/model.ts'
import { ada, aJob, anOffer, anOwnedOffer, now, type JobBuilder } from '../../core/jobs/testing.ts'
import { day, hour, minute } from '../../core/time/index.ts'
import type { Provider } from '../../providers/port.ts'
import { openStore, type Applied, type Store, type Transaction } from '../../store/index.ts'
import { Agents } from '../agents.ts'
import type { Context } from '../engine/context.ts'
import type { Engine } from '../engine/engine.ts'
import { readWorld, Sights } from '../engine/world.ts'
import { Jobs } from './jobs.ts'

let store: Store
/** answers instead of the store, once each */
let answers: ((transaction: Transaction) => Promise<Applied>)[]
let woken: string[]
let jobs: Jobs

const provider = (name: string, owns: Provider['owns'], offers: Provider['offers']) =>
  ({ name, owns, offers }) as Provider

beforeEach(async () => {
  store = await openStore(':memory:', () => now)
  answers = []
  woken = []
  let drawn = 0
  const clock = { now: () => now, monotonic: () => 0, after: () => ({ cancel: () => {} }) }
  const between: Store = Object.create(store, {
    apply: { value: (transaction: Transaction) => answers.shift()?.(transaction) ?? store.apply(transaction) },
  }) as Store
  const context = {
    store: between,
    clock,
    random: { letters: (count: number) => String(drawn++).padStart(count, 'a') },
    providers: new Map([
      [
        'cloud',
        provider('model', 'rented', async () => [anOffer(), anOffer({ id: 'cloud/eu/b/small/spot', zone: 'b' })]),
      ],
      ['desk', provider('own', 'owned', async () => [anOwnedOffer()])],
    ]),
    agents: new Agents(() => now),
    logs: { size: () => 0 },
    log: pino({ level: 'silent' }),
    outputsIn: () => true,
    happened: () => {},
  } as unknown as Context
  const sights = new Sights(clock)
  const engine = { world: (id: string) => readWorld(context, sights, id), wake: (id: string) => woken.push(id) }
  jobs = new Jobs(context, engine as unknown as Engine)
})
afterEach(() => store.close())

const request = (differs: Partial<JobRequest> = {}): JobRequest => ({
  command: ['python3', 'train.py'],
  env: {},
  workdir: null,
  outputs: [],
  needs: {},
  checkpoint: 'auto',
  settings: {},
  ...differs,
})
const again = { same: false, settings: {} }

/** Remembers a job as it was built, under another name where one is given. */
const remember = async (builder: JobBuilder, differs: Partial<JobRecord> = {}): Promise<void> => {
  const { job, attempts } = builder.build()
  const { version: _, ...row } = { ...job, ...differs }
  await store.apply({
    changes: [
      { do: 'insert', table: 'jobs', row },
      ...attempts.map(
        ({ version: _v, ...attempt }: AttemptRecord) => ({ do: 'insert', table: 'attempts', row: attempt }) as const,
      ),
    ],
    events: [],
  })
}
const row = async (): Promise<JobRecord> => {
  const job = await store.get('jobs', 'job')
  if (!job) throw new Error('the job is not there')
  return job
}
const refused = async (asked: Promise<unknown>): Promise<{ code: string; facts: Record<string, unknown> }> => {
  const error: unknown = await asked.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof PortalError)) throw new Error(`not refused: ${String(error)}`)
  return { code: error.code, facts: error.facts as Record<string, unknown> }
}

describe('a new job', () => {
  test('is remembered as it was asked for, and looked at', async () => {
    const view = await jobs.create(request({ name: 'nightly', settings: { ttl: '5h' }, needs: { cpus: 2 } }), ada)
    expect(view).toMatchObject({ name: 'nightly', state: 'queued', attempt: null })
    expect(woken).toEqual([view.id])
    expect((await store.get('jobs', view.id))?.spec).toMatchObject({ settings: { ttl: 5 * hour }, needs: { cpus: 2 } })
    expect((await store.events(0, { limit: 10 })).map(({ kind, by }) => [kind, by])).toEqual([['created', 'ada']])
  })

  test('without a name gets one that says what it runs', async () => {
    expect((await jobs.create(request(), ada)).name).toMatch(/^train-/)
  })

  test('whose name is taken is refused', async () => {
    await jobs.create(request({ name: 'nightly' }), ada)
    expect(await refused(jobs.create(request({ name: 'nightly' }), ada))).toEqual({
      code: 'name_taken',
      facts: { name: 'nightly' },
    })
  })

  test.each([
    [
      'J-RUN-4 an unknown setting',
      { settings: { tll: '5h' } },
      { code: 'unknown_setting', facts: { key: 'tll', nearest: 'ttl' } },
    ],
    [
      'J-RUN-4 a setting out of range',
      { settings: { ttl: '5s' } },
      { code: 'invalid_setting', facts: { key: 'ttl', value: '5s' } },
    ],
    [
      'J-RUN-4 a setting with a name that objects have',
      { settings: { constructor: '1' } },
      { code: 'unknown_setting' },
    ],
    ['J-RUN-3 a pattern that means nothing', { on: 'clod' }, { code: 'unknown_pattern', facts: { nearest: 'cloud' } }],
    ['J-RUN-3 a place that there is not', { on: 'cloud/eu/c' }, { code: 'unknown_pattern' }],
    ['J-RUN-3 a part left open that leaves nothing', { on: 'cloud/*/c' }, { code: 'unknown_pattern' }],
  ] as const)('%s is refused, and nothing is remembered', async (_, differs, expected) => {
    expect(await refused(jobs.create(request(differs as Partial<JobRequest>), ada))).toMatchObject(expected)
    expect(await store.jobs({})).toEqual([])
  })

  test.each([
    ['cloud/eu', false],
    ['model/eu', false],
    ['cloud/*/a', false],
    ['cloud/eu/a/small/spot', true],
    ['cloud/*/a/small/spot', false],
    ['desk', true],
  ])('J-RUN-3 --on %s pins: %s', async (on, pinned) => {
    expect(await jobs.create(request({ on }), ada)).toMatchObject({ pinned, narrowed: !pinned })
  })

  test('whose making was not answered is made once, and whoever asked is told', async () => {
    const lost = (made: boolean) => async (transaction: Transaction) => {
      if (made) await store.apply(transaction)
      return { is: 'unknown', error: 'the connection broke' } as const
    }
    answers.push(lost(true))
    expect(await jobs.create(request({ name: 'one' }), ada)).toMatchObject({ name: 'one' })
    answers.push(lost(false))
    expect(await jobs.create(request({ name: 'two' }), ada)).toMatchObject({ name: 'two' })
    expect((await store.jobs({})).map(({ name }) => name).sort()).toEqual(['one', 'two'])
  })
})

describe('a job is found', () => {
  beforeEach(async () => {
    await remember(aJob(), { id: 'j1', name: 'train-a' })
    await remember(aJob(), { id: 'j2', name: 'train-ab' })
    await remember(aJob(), { id: 'j3', name: 'other' })
  })

  test.each([
    ['by its name, though another begins with it', 'train-a', 'j1'],
    ['by its id', 'j2', 'j2'],
    ['by the beginning of its name', 'oth', 'j3'],
  ])('%s', async (_, ref, id) => {
    expect((await jobs.find(ref)).id).toBe(id)
  })

  test('not where the beginning is that of several: they are named', async () => {
    const { code, facts } = await refused(jobs.find('train'))
    expect(code).toBe('ambiguous_job')
    expect([...(facts['matches'] as string[])].sort()).toEqual(['train-a', 'train-ab'])
  })

  test('not where there is none: the nearest is named', async () => {
    expect(await refused(jobs.find('othr'))).toEqual({
      code: 'job_not_found',
      facts: { ref: 'othr', nearest: 'other' },
    })
  })
})

describe('what can be asked of a job in its state', () => {
  const running = () => aJob().running()
  test.each([
    ['suspend', 'a running one', running(), null],
    ['suspend', 'a starting one: as soon as it runs', aJob().starting('started'), null],
    ['suspend', 'one that moves', aJob().moving('hold'), null],
    ['suspend', 'a queued one', aJob(), 'wrong_state'],
    ['suspend', 'one that is being suspended', aJob().suspending('hold'), 'wrong_state'],
    ['suspend', 'a suspended one', aJob().suspended(), 'wrong_state'],
    ['suspend', 'an ended one', aJob().stopped(), 'job_ended'],
    ['suspend', 'one that is being stopped: a stop is not taken back', running().wishes('stop'), 'wrong_state'],
    ['move', 'a running one', running(), null],
    ['move', 'one that moves', aJob().moving('hold'), 'wrong_state'],
    ['move', 'a suspended one', aJob().suspended(), 'wrong_state'],
    ['move', 'one that is being stopped', running().wishes('stop'), 'wrong_state'],
    ['stop', 'a queued one', aJob(), null],
    ['stop', 'a running one', running(), null],
    ['stop', 'one that moves', aJob().moving('hold'), null],
    ['stop', 'one that is being suspended', aJob().suspending('hold'), null],
    ['stop', 'a suspended one', aJob().suspended(), null],
    ['stop', 'one that is being resumed', aJob().resuming(), null],
    ['stop', 'one that is being stopped already', running().wishes('stop'), null],
    ['stop', 'an ended one', aJob().stopped(), 'job_ended'],
    ['resume', 'a suspended one', aJob().suspended(), null],
    ['resume', 'a stopped one with its checkpoint', aJob().stopped(), null],
    ['resume', 'a running one', running(), 'wrong_state'],
    ['resume', 'a queued one', aJob(), 'wrong_state'],
    ['resume', 'one that is being resumed', aJob().resuming(), 'resume_lost'],
    ['resume', 'one whose checkpoint’s time is over', aJob().stopped({ resumableUntil: now - 1 }), 'nothing_to_resume'],
    ['resume', 'one that kept none', aJob().stopped({ resumableUntil: null }), 'nothing_to_resume'],
    ['resume', 'one without a checkpoint', aJob().stopped().with({ base: null }), 'nothing_to_resume'],
    ['resume', 'one that is done', aJob().stopped().in({ is: 'succeeded', since: now }), 'job_ended'],
  ] as const)('%s: %s', async (action, _, builder, code) => {
    await remember(builder)
    const asks = {
      suspend: () => jobs.suspend('train', ada),
      move: () => jobs.move('train', {}, ada),
      stop: () => jobs.stop('train', { now: false }, ada),
      resume: () => jobs.resume('train', again, ada),
    }
    const said = await asks[action]().then(
      () => null,
      (error: unknown) => (error instanceof PortalError ? error.code : String(error)),
    )
    expect(said).toBe(code)
    expect(woken).toEqual(code === null ? ['job'] : [])
  })

  test('whoever asks at the wrong time is told what is possible', async () => {
    await remember(aJob().suspended())
    expect((await refused(jobs.move('train', {}, ada))).facts).toMatchObject({
      state: 'suspended',
      possible: 'resume, stop',
    })
  })
})

describe('what was asked is recorded, and carried out by the loop', () => {
  test('a stop, with and without a last checkpoint, and who asked', async () => {
    await remember(aJob().running())
    await jobs.stop('train', { now: false }, ada)
    expect((await row()).wish).toMatchObject({ to: 'stop', keep: true, by: ada, why: { code: 'ask.stop' } })
    await jobs.stop('train', { now: true }, ada)
    expect((await row()).wish).toMatchObject({ to: 'stop', keep: false })
  })

  test('a stop takes the place of what was asked before', async () => {
    await remember(aJob().running().wishes('move'))
    await jobs.stop('train', { now: false }, ada)
    expect((await row()).wish).toMatchObject({ to: 'stop' })
  })

  test('the answer says behind which event its outcome comes', async () => {
    await remember(aJob().running())
    const { after } = await jobs.suspend('train', ada)
    expect((await store.events(after - 1, { limit: 1 })).map(({ kind }) => kind)).toEqual(['asked'])
    expect(await store.events(after, { limit: 1 })).toEqual([])
  })

  test('a change that raced with the loop is tried again', async () => {
    await remember(aJob().running())
    answers.push(async () => ({ is: 'refused', change: 0, why: 'version' }))
    await jobs.suspend('train', ada)
    expect((await row()).wish).toMatchObject({ to: 'suspend' })
  })
})

describe('J-RES-1 a resume', () => {
  test('of two at once one wins, and the other is told', async () => {
    await remember(aJob().suspended())
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => jobs.resume('train', again, ada)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const codes = outcomes.flatMap((one) => (one.status === 'rejected' ? [(one.reason as PortalError).code] : []))
    expect(codes).toEqual(['resume_lost', 'resume_lost'])
  })

  test('remembers what it falls back to, and holds the checkpoint', async () => {
    await remember(aJob().suspended())
    await jobs.resume('train', { ...again, wait: hour }, ada)
    expect((await row()).state).toMatchObject({
      is: 'resuming',
      token: null,
      by: ada,
      waitUntil: now + hour,
      was: { is: 'suspended' },
    })
  })

  test('replaces needs, pattern and time limit where they are given, and leaves the rest', async () => {
    await remember(aJob().suspended().settings({ stopGrace: minute }))
    await jobs.resume('train', { ...again, cpus: 4, on: 'cloud/eu', ttl: '9h' }, ada)
    expect((await row()).spec).toMatchObject({
      needs: { cpus: 4, memoryBytes: 1e9 },
      on: { pattern: 'cloud/eu', pinned: false },
      settings: { ttl: 9 * hour, stopGrace: minute },
    })
  })

  test('with a setting out of range changes nothing', async () => {
    await remember(aJob().suspended())
    expect((await refused(jobs.resume('train', { ...again, ttl: '1s' }, ada))).code).toBe('invalid_setting')
    expect((await row()).state.is).toBe('suspended')
  })

  test.each([
    ['begins both counts afresh where its limit had ended it', { by: { policy: 'ttl' } }, now],
    ['leaves them where a person had', { by: ada }, now - 9 * day],
  ] as const)('J-TTL-3 %s', async (_, ended, ttlFrom) => {
    await remember(
      aJob()
        .stopped(ended)
        .with({ ttlFrom: now - 9 * day }),
    )
    await jobs.resume('train', again, ada)
    expect((await row()).ttlFrom).toBe(ttlFrom)
  })
})
