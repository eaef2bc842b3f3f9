import { describe, expect, test } from 'vitest'
import type { Want } from '../contract/agent.ts'
import { hour } from '../core/time/index.ts'
import type { AttemptSeen, AttemptState } from './model.ts'
import { isOrderedAnew, lastSaveLead, methodOf, nextStep, sdkPatience, takeOrder } from './step.ts'
import { fresh, held, hold, now, run, running, seen, start, step } from './testing.ts'

describe('from an order to a process', () => {
  const ordered = { ...fresh, version: 1, want: run(), start: start() }
  const nothing: Partial<AttemptSeen> = {
    keeper: 'over',
    kept: { is: 'new' },
    lease: null,
    workdir: 'absent',
    let: false,
  }

  test.each([
    ['the working directory first', {}, 'fetch'],
    ['J-LEASE-1 no process without a lease', { workdir: 'ready' }, 'wait'],
    ['then it is started', { workdir: 'ready', lease: now.boot + hour }, 'start'],
    ['one thing at a time', { busy: 'fetch' }, 'wait'],
    ['what failed is not tried again at once', { retryAt: now.boot + 1 }, 'wait'],
    ['but then', { retryAt: now.boot }, 'fetch'],
  ] as const)('%s', (_, what, expected) => {
    expect(nextStep(ordered, { ...seen, ...nothing, ...what }, now).do).toBe(expected)
  })

  test('it is let past job.state() only after that is on disk', () => {
    expect(step({ ran: false })).toEqual({ do: 'change', change: { ran: true } })
    expect(step({}, { let: false })).toEqual({ do: 'let-run' })
  })

  test('a restored attempt is let run only once its values are proven', () => {
    const restoring = { ran: false, from: 3 }
    expect(step(restoring, { restored: null }).do).toBe('wait')
    expect(
      step({ ...restoring, want: { do: 'prepare', start: start(), slot: 3 } }, { restored: { is: 'restored' } }).do,
    ).toBe('wait')
    expect(step(restoring, { restored: { is: 'restored' } })).toEqual({ do: 'change', change: { ran: true } })
    const failure = { slot: 3, refused: [], why: 'damaged' }
    expect(step(restoring, { restored: { is: 'failed', failure } })).toEqual({
      do: 'change',
      change: { restoreFailed: failure },
    })
  })

  test('a keeper that was killed before its job began may begin again; a job that began never does', () => {
    expect(step({}, { keeper: 'over', kept: { is: 'new' } }).do).toBe('start')
    const stop: Want = { do: 'stop', grace: 0, save: false, safePointWait: 0, lastSlot: 0 }
    expect(step({ want: stop }, { keeper: 'over', kept: { is: 'new' } })).toEqual({
      do: 'change',
      change: { ending: 'stopped' },
    })
    expect(step({}, { keeper: 'over', kept: { is: 'begun' } })).toMatchObject({
      do: 'change',
      change: { exit: { how: 'ended' } },
    })
  })
})

describe('orders', () => {
  const order = (jobVersion: number, want: Want) => ({ attempt: 'j.1', token: 1, jobVersion, want })
  test('a lower version is refused, the same one taken again', () => {
    expect(takeOrder({ ...running, version: 5 }, order(4, { do: 'end' }))).toBe(null)
    expect(takeOrder({ ...running, version: 5 }, order(5, { do: 'end' }))?.want).toEqual({ do: 'end' })
  })
  test('an order for another attempt is refused', () => {
    expect(takeOrder(running, { ...order(9, { do: 'end' }), token: 2 })).toBe(null)
  })
  test('the first order says what it begins from; later ones do not change that', () => {
    const first = takeOrder(fresh, order(1, { do: 'prepare', start: start({}, { lastSlot: 4 }), slot: 3 }))
    expect(first).toMatchObject({ from: 3, parent: 3, lastSlot: 4 })
    const then = takeOrder(first ?? fresh, order(2, run({ slot: 9, lastSlot: 5 })))
    expect(then).toMatchObject({ from: 3, parent: 3, lastSlot: 4, version: 2 })
  })
  test('what has not begun, and what is forgotten at once, is ordered anew after a crash; all else is on disk', () => {
    const ordered = takeOrder(fresh, order(1, run())) ?? fresh
    expect(isOrderedAnew(ordered)).toBe(true)
    expect(isOrderedAnew({ ...ordered, want: { do: 'end' } })).toBe(false)
    expect(isOrderedAnew({ ...ordered, ending: 'stopped' })).toBe(false)
    expect(isOrderedAnew({ ...running, want: ordered.want })).toBe(false)
    const exit = { code: 0, signal: null, at: 0, how: 'exited', error: null } as const
    expect(isOrderedAnew({ ...running, exit })).toBe(false)
    expect(isOrderedAnew({ ...running, exit, want: { do: 'end' } })).toBe(true)
  })
})

describe('held', () => {
  const cases: [string, Partial<AttemptState>, Partial<AttemptSeen>, object][] = [
    ['waits', { want: hold() }, {}, { do: 'wait' }],
    ['promises', { want: { do: 'promise', move: 'm' } }, {}, { do: 'change', change: { promised: 'm' } }],
    ['promises no other move', { want: { do: 'promise', move: 'other' } }, {}, { do: 'wait' }],
    [
      'is killed without running again',
      { want: { do: 'kill-held', move: 'm' } },
      {},
      { do: 'change', change: { ending: 'killed-held' } },
    ],
    [
      'is let go by its abort, behind the seal',
      { want: run({ aborted: 'm', lastSlot: 2 }) },
      {},
      { do: 'change', change: { held: null, promised: null, lastSlot: 2 } },
    ],
    ['is not let go by another’s abort', { want: run({ aborted: 'm0', lastSlot: 2 }) }, {}, { do: 'wait' }],
    ['is not let go by an order that names none', { want: run() }, {}, { do: 'wait' }],
    [
      'is let go by a stop, behind the seal of the move that it ends',
      { want: { do: 'stop', grace: 1, save: true, safePointWait: 1, lastSlot: 9 } },
      {},
      { do: 'change', change: { held: null, lastSlot: 9 } },
    ],
    [
      'voids its move when it waited too long, and lets go in the same write',
      { want: hold(), held: { ...held, until: now.boot } },
      {},
      { do: 'change', change: { held: null, voided: ['m'] } },
    ],
    [
      'does not once it has promised',
      { want: { do: 'promise', move: 'm' }, promised: 'm', held: { ...held, until: now.boot } },
      {},
      { do: 'wait' },
    ],
    [
      'takes a hold of its own over for a move',
      { want: hold('m'), held: { ...held, move: null, because: 'notice', until: null } },
      { notice: { endsAt: now.wall + 9 } },
      { do: 'change', change: { held: { move: 'm', slot: 1 } } },
    ],
    [
      'runs on when the notice is withdrawn',
      { held: { ...held, move: null, because: 'notice', until: null } },
      {},
      { do: 'change', change: { held: null } },
    ],
    [
      'stays while the notice stands, though its move was aborted',
      { want: run({ aborted: 'm', lastSlot: 2 }) },
      { notice: { endsAt: now.wall + 9 } },
      { do: 'change', change: { lastSlot: 2, held: { move: null } } },
    ],
    [
      'runs on when a lease came after all',
      { held: { ...held, move: null, because: 'deadline', until: null } },
      {},
      { do: 'change', change: { held: null } },
    ],
    ['ends at its deadline all the same', {}, { lease: now.boot }, { do: 'change', change: { ending: 'deadline' } }],
  ]
  test.each(cases)('%s', (_, state, what, expected) => {
    expect(step({ held, ...state }, what)).toMatchObject(expected)
  })

  test('after it was let go on disk it is thawed', () => {
    expect(step({}, { frozen: true })).toEqual({ do: 'thaw' })
  })
})

describe('running', () => {
  const noSdk = { sdk: null, startedAt: { boot: now.boot - sdkPatience, wall: 0 } }
  const young = { sdk: null, startedAt: { boot: now.boot - 1000, wall: 0 } }
  const notice = { notice: { endsAt: now.wall + 30_000 } }
  const cases: [string, Partial<AttemptState>, Partial<AttemptSeen>, object][] = [
    ['has nothing to do', {}, {}, { do: 'wait' }],
    ['is probed', { want: { do: 'probe', move: 'm' } }, {}, { do: 'probe', move: 'm' }],
    [
      'is probed once a move',
      { want: { do: 'probe', move: 'm' }, probe: { move: 'm', bytes: 1, refused: [], why: null } },
      {},
      { do: 'wait' },
    ],
    [
      'J-STRICT-1 without an SDK it is refused with why',
      { want: { do: 'probe', move: 'm' }, ...noSdk },
      {},
      { do: 'change', change: { probe: { move: 'm', bytes: 0 } } },
    ],
    [
      'a young one is given the time to say its state',
      { want: { do: 'probe', move: 'm' }, ...young },
      {},
      { do: 'wait', until: now.boot - 1000 + sdkPatience },
    ],
    [
      'is held',
      { want: hold() },
      {},
      { do: 'save', hold: { move: 'm', because: 'order', holdFor: 600_000 }, wait: 60_000 },
    ],
    [
      'is not held again for a move that refused',
      { want: hold(), saveRefused: { move: 'm', refused: [], why: '', at: 1 } },
      {},
      { do: 'wait' },
    ],
    ['is not held again for a move that it voided', { want: hold(), voided: ['m'] }, {}, { do: 'wait' }],
    [
      'J-SPOT-1 saves and holds on a notice by itself',
      {},
      notice,
      { do: 'save', hold: { move: null, because: 'notice' }, wait: 30_000 },
    ],
    ['does not where the spot policy is off', { start: start({ spot: false }) }, notice, { do: 'wait' }],
    [
      'tries again after a refusal, not at once',
      {},
      { ...notice, retryAt: now.boot + 5 },
      { do: 'wait', until: now.boot + 5 },
    ],
    [
      'J-LEASE-2 saves before its deadline',
      {},
      { lease: now.boot + 20_000 },
      { do: 'save', hold: { because: 'deadline' } },
    ],
    ['ends at its deadline', {}, { lease: now.boot - 1 }, { do: 'change', change: { ending: 'deadline' } }],
    ['saves when the job asks', {}, { asks: true }, { do: 'save', hold: null }],
    ['J-LEASE-2 stands still after its clock jumped', { want: hold() }, { suspect: true }, { do: 'wait' }],
    [
      'J-STOP-1 a stop saves behind what is sealed by now',
      { want: { do: 'stop', grace: 5, save: true, safePointWait: 7, lastSlot: 9 } },
      {},
      { do: 'change', change: { lastSlot: 9 } },
    ],
    [
      'J-STOP-1 a stop saves first where it can',
      { want: { do: 'stop', grace: 5, save: true, safePointWait: 7, lastSlot: 0 } },
      {},
      { do: 'save', hold: null, wait: 7 },
    ],
    [
      'then asks',
      {
        want: { do: 'stop', grace: 5, save: true, safePointWait: 7, lastSlot: 0 },
        stop: { saved: true, askedAt: null },
      },
      {},
      { do: 'ask-to-end' },
    ],
    [
      'then waits',
      {
        want: { do: 'stop', grace: 5, save: true, safePointWait: 7, lastSlot: 0 },
        stop: { saved: true, askedAt: now.boot },
      },
      {},
      { do: 'wait', until: now.boot + 5 },
    ],
    [
      'then kills',
      {
        want: { do: 'stop', grace: 5, save: true, safePointWait: 7, lastSlot: 0 },
        stop: { saved: true, askedAt: now.boot - 5 },
      },
      {},
      { do: 'change', change: { ending: 'stopped' } },
    ],
    [
      'a stop without a save asks at once',
      { want: { do: 'stop', grace: 5, save: false, safePointWait: 7, lastSlot: 0 } },
      {},
      { do: 'ask-to-end' },
    ],
    ['an end kills at once', { want: { do: 'end' } }, {}, { do: 'change', change: { ending: 'ended' } }],
    ['what is being ended is killed until nothing is left', { ending: 'ended' }, {}, { do: 'kill' }],
    [
      'a committed suspension of a job that is not held ends it',
      { want: { do: 'kill-held', move: 'm' } },
      {},
      { do: 'change', change: { ending: 'ended' } },
    ],
    [
      'a save whose end nobody saw is looked for first',
      { saving: { slot: 2, since: 1 }, want: hold() },
      {},
      { do: 'look' },
    ],
  ]
  test.each(cases)('%s', (_, state, what, expected) => {
    expect(step(state, what)).toMatchObject(expected)
  })
})

describe('ended', () => {
  const over: Partial<AttemptSeen> = { keeper: 'over' }
  const exit = (state: Partial<AttemptState>, what: Partial<AttemptSeen>) => {
    const got = step(state, { ...over, ...what })
    return got.do === 'change' ? got.change.exit : got
  }
  test.each([
    ['by itself', {}, { kept: { is: 'exit', code: 3 } }, { how: 'exited', code: 3, signal: null }],
    ['by a signal', {}, { kept: { is: 'signal', number: 11 } }, { how: 'exited', code: null, signal: 'SIGSEGV' }],
    [
      'an end from before the hold wins',
      { held, ending: 'killed-held' },
      { kept: { is: 'exit', code: 0 } },
      { how: 'exited', code: 0 },
    ],
    ['killed while held', { held, ending: 'killed-held' }, {}, { how: 'killed-held', code: null }],
    ['by the keeper at its deadline', {}, { kept: { is: 'deadline' } }, { how: 'deadline' }],
    [
      'asked to, with its own code',
      { stop: { saved: true, askedAt: 1 } },
      { kept: { is: 'exit', code: 9 } },
      { how: 'stopped', code: 9 },
    ],
    [
      'in the moment before it was asked',
      { stop: { saved: true, askedAt: null } },
      { kept: { is: 'exit', code: 0 } },
      { how: 'exited' },
    ],
    ['superseded', { ending: 'superseded' }, {}, { how: 'superseded', signal: 'SIGKILL' }],
    ['with the machine', {}, { kept: { is: 'begun' } }, { how: 'ended' }],
    [
      'never started',
      {},
      { kept: { is: 'no-start', code: 127 } },
      { how: 'could-not-start', error: 'the command train was not found' },
    ],
  ] as const)('%s', (_, state, what, expected) => {
    expect(exit(state as Partial<AttemptState>, what as Partial<AttemptSeen>)).toMatchObject(expected)
  })

  const ended = { exit: { code: 0, signal: null, at: 1, how: 'exited', error: null } } as const
  test('sends its outputs, and is forgotten when nobody wants it', () => {
    const outputs = { ...ended, start: start({}, { outputs: ['out'] }) }
    expect(step(outputs, over)).toEqual({ do: 'deliver' })
    expect(step({ ...outputs, delivered: true }, over).do).toBe('wait')
    expect(step({ ...outputs, want: { do: 'end' } }, over)).toEqual({ do: 'forget' })
    expect(step(ended, over)).toEqual({ do: 'change', change: { delivered: true } })
    expect(step({ ...outputs, exit: { ...ended.exit, how: 'killed-held' } }, over)).toEqual({
      do: 'change',
      change: { delivered: true },
    })
  })
})

test('how it carries its state: unknown while it starts, then by what it said or did not say', () => {
  const at = (boot: number) => ({ ...now, boot })
  expect(methodOf({ ...running, sdk: null }, at(running.startedAt?.boot ?? 0))).toBe('unknown')
  expect(methodOf({ ...running, sdk: null }, at((running.startedAt?.boot ?? 0) + sdkPatience))).toBe('none')
  expect(methodOf(running, now)).toBe('sdk')
  expect(methodOf({ ...running, start: start({}, { checkpoint: 'none' }) }, now)).toBe('none')
})

test('the last save begins early enough for three like the last one, at most half a lease before its end', () => {
  expect(lastSaveLead(running)).toBe(20_000)
  const saved = { slot: 1, at: 0, bytes: 0, storedBytes: 0, took: 60_000 }
  expect(lastSaveLead({ ...running, saved })).toBe(180_000)
  expect(lastSaveLead({ ...running, saved: { ...saved, took: hour } })).toBe(hour / 2)
})
