import { assert, constant, constantFrom, integer, option, property, record } from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Want } from '../contract/agent.ts'
import { hour } from '../core/time/index.ts'
import type { AttemptSeen, AttemptState } from './model.ts'
import { nextStep, phaseOf } from './step.ts'
import { hold, now, run, running, seen, start } from './testing.ts'

describe('over all that can be', () => {
  const wants: Want[] = [
    run(),
    run({ aborted: 'm', lastSlot: 2 }),
    { do: 'prepare', start: start(), slot: 1 },
    { do: 'probe', move: 'm' },
    hold(),
    hold('m2'),
    { do: 'promise', move: 'm' },
    { do: 'kill-held', move: 'm' },
    { do: 'stop', grace: 10, save: true, safePointWait: 10, lastSlot: 0 },
    { do: 'end' },
  ]
  const states = record({
    want: constantFrom(...wants),
    startedAt: constantFrom(running.startedAt, null),
    ran: constantFrom(true, false),
    from: constantFrom(null, 1),
    held: option(
      record({
        move: constantFrom('m', null),
        slot: constant(1),
        logOffset: constant(0),
        because: constantFrom('order', 'notice', 'deadline'),
        until: constantFrom(null, now.boot - 1, now.boot + 1),
      }),
      { nil: null },
    ),
    promised: constantFrom(null, 'm'),
    voided: constantFrom([], ['m']),
    ending: constantFrom(null, 'ended', 'killed-held', 'deadline'),
    saving: constantFrom(null, { slot: 2, since: 1 }),
    sdk: constantFrom(null, running.sdk),
  })
  const sights = record({
    lease: constantFrom(null, now.boot - 1, now.boot + 10_000, now.boot + hour, Infinity),
    keeper: constantFrom('running', 'over'),
    kept: constantFrom({ is: 'new' }, { is: 'begun' }, { is: 'exit', code: 0 }, { is: 'deadline' }),
    workdir: constantFrom('absent', 'ready'),
    restored: constantFrom(null, { is: 'nothing' }, { is: 'restored' }),
    let: constantFrom(true, false),
    frozen: constantFrom(true, false),
    suspect: constantFrom(true, false),
    notice: constantFrom(null, { endsAt: now.wall + 1000 }),
    busy: constantFrom(null, 'save', 'start'),
    retryAt: integer({ min: 0, max: 2_000_000 }),
  })
  const all = property(states, sights, (state, sight) => {
    const whole = { ...running, ...state } as AttemptState
    const what = { ...seen, ...sight } as AttemptSeen
    const next = nextStep(whole, what, now)
    const broken: string[] = []
    const must = (holds: boolean, what: string): void => {
      if (!holds) broken.push(what)
    }
    if (next.do === 'start') must(what.lease !== null, 'no start without a lease')
    if (['thaw', 'let-run', 'save', 'probe'].includes(next.do)) {
      must(whole.held === null, 'what is held does not go on')
      must(!what.suspect, 'nor what may have slept')
      must(whole.ending === null, 'nor what is being ended')
      must(what.lease === null || what.lease > now.boot, 'nor what has no lease any more')
    }
    if (next.do === 'change' && next.change.held === null && whole.held !== null) {
      const { move } = whole.held
      const { want } = whole
      if (whole.promised !== null && whole.promised === move)
        must(want.do === 'run' || want.do === 'stop', 'a promise is broken by nobody but an abort')
      if (want.do === 'run' && move !== null)
        must(want.aborted === move || next.change.voided?.includes(move) === true, 'each move lets go its own')
    }
    let state2 = whole
    let count = 0
    for (let then = next; then.do === 'change' && count <= 10; then = nextStep(state2, what, now)) {
      state2 = { ...state2, ...then.change }
      count++
    }
    must(count <= 10, 'what is remembered comes to rest')
    must(typeof phaseOf(state2, what) === 'string', 'it has a phase')
    if (broken.length > 0) throw new Error(`${broken.join('; ')}: ${JSON.stringify(next)}`)
  })

  test('J-SAFE-2 nothing goes on that may not, and every chain of changes comes to rest', () => {
    expect(() => assert(all, { numRuns: 3000 })).not.toThrow()
  })
})
