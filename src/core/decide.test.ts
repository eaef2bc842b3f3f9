import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { check, type Policy, type Verdict } from './decide.ts'
import { why } from './reasons.ts'

interface Act {
  readonly do: 'suspend' | 'stop' | 'renew'
}
const because = why('ttl.off')
const changes = (act: Act) => act.do !== 'renew'
const policies = (verdicts: readonly Verdict<Act>[]): Policy<null, Act>[] =>
  verdicts.map((verdict, n) => ({ name: `p${n}`, decide: () => verdict }))
const acts = (what: Act['do'], lookAgainAt?: number): Verdict<Act> => ({
  kind: 'act',
  act: { do: what },
  why: because,
  ...(lookAgainAt !== undefined && { lookAgainAt }),
})
const rests = (lookAgainAt: number): Verdict<Act> => ({ kind: 'rest', why: because, lookAgainAt })
const warns = (lookAgainAt: number): Verdict<Act> => ({ kind: 'warn', why: because, lookAgainAt })
const look = (...verdicts: Verdict<Act>[]) => check(policies(verdicts), null, 100, changes)
const acted = (...verdicts: Verdict<Act>[]) => look(...verdicts).acts.map(({ policy, act }) => `${policy} ${act.do}`)

describe('a check', () => {
  test.each([
    ['nobody wants anything', [rests(200), rests(300)], []],
    [
      'J-LOOP-2 of two that would change the place the first in order acts',
      [acts('stop'), acts('suspend')],
      ['p0 stop'],
    ],
    ['J-LOOP-2 the order decides, not what is asked', [acts('suspend'), acts('stop')], ['p0 suspend']],
    ['J-LOOP-2 a renewal never blocks another', [acts('renew'), acts('suspend')], ['p0 renew', 'p1 suspend']],
    ['J-LOOP-2 a renewal is never blocked', [acts('suspend'), acts('renew')], ['p0 suspend', 'p1 renew']],
    ['a warning stands in nobody’s way', [warns(200), acts('stop')], ['p1 stop']],
    ['of three only the first', [rests(1), acts('stop'), acts('suspend'), acts('stop')], ['p1 stop']],
  ] as const)('%s', (_, verdicts, expected) => {
    expect(acted(...verdicts)).toEqual(expected)
  })

  test('what came second is kept too, and marked as outranked', () => {
    const { verdicts } = look(acts('stop'), rests(200), acts('suspend'), acts('renew'))
    expect(verdicts.map(({ policy, outranked }) => [policy, outranked])).toEqual([
      ['p0', false],
      ['p1', false],
      ['p2', true],
      ['p3', false],
    ])
  })

  test.each([
    ['the soonest of those that rest', [rests(300), warns(250), rests(400)], 250],
    ['an act without a moment of its own waits for what it changes', [acts('renew'), rests(400)], 400],
    ['an act that says when is looked at then', [acts('suspend', 150), rests(400)], 150],
    ['nothing that time alone could change', [rests(Infinity)], Infinity],
    ['no policies at all', [], Infinity],
  ] as const)('looks again at: %s', (_, verdicts, expected) => {
    expect(look(...verdicts).lookAgainAt).toBe(expected)
  })

  test('J-LOOP-2 at most one act of a check changes where it runs, and everything that was concluded is kept', () => {
    const verdict = fc.oneof(
      fc.constantFrom<Act['do']>('suspend', 'stop', 'renew').map((what) => acts(what)),
      fc.integer().map(rests),
    )
    fc.assert(
      fc.property(fc.array(verdict, { maxLength: 9 }), (verdicts) => {
        const checked = look(...verdicts)
        expect(checked.acts.filter(({ act }) => changes(act)).length).toBeLessThanOrEqual(1)
        expect(checked.verdicts).toHaveLength(verdicts.length)
        expect(checked.verdicts.filter(({ kind, outranked }) => kind === 'act' && !outranked)).toHaveLength(
          checked.acts.length,
        )
        expect(look(...verdicts)).toEqual(checked)
      }),
    )
  })
})
