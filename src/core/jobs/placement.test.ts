import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { money } from '../money/index.ts'
import type { JobSpec, Needs, Offer } from './model.ts'
import { choose, refusalsInWords, type PlacementQuestion } from './placement.ts'
import { builtIn } from './settings.ts'
import { anOffer, anOwnedOffer } from './testing.ts'

const plain: Needs = { cpus: 1, memoryBytes: 1e9, diskBytes: 0, gpus: null, image: null }
const ask = (
  offers: readonly Offer[],
  differs: Partial<PlacementQuestion> & { needs?: Partial<Needs>; market?: JobSpec['settings']['market'] } = {},
) => {
  const { needs, market, ...rest } = differs
  const settings = { ...builtIn, market: market ?? builtIn.market }
  const spec = { needs: { ...plain, ...needs }, on: null, settings }
  return choose({ spec, on: null, offers, connections: ['cloud', 'desk'], tried: [], left: {}, ...rest })
}
const ids = (offers: readonly Offer[]) => offers.map(({ id }) => id)
const spot = anOffer()
const dear = anOffer({ id: 'cloud/eu/a/small/on-demand', market: 'on-demand', price: money(0.3) })
const cheap = anOffer({ id: 'cloud/eu/b/small/spot', zone: 'b', price: money(0.08) })
const desk = anOwnedOffer()
const gpu = anOffer({ id: 'cloud/eu/a/gpu/spot', price: money(2), gpus: { model: 'A100', count: 2 } })

describe('J-RUN-5 which offers fit', () => {
  test.each([
    ['all of them, cheapest first', ask([dear, spot, cheap]), [cheap.id, spot.id, dear.id]],
    [
      'an owned machine goes before a rented one of its price',
      ask([anOffer({ price: money(0) }), desk]),
      ['desk', spot.id],
    ],
    [
      'of equal ones the first by name, in whatever order they come',
      ask([anOffer({ id: 'cloud/z/z/z/spot' }), spot]),
      [spot.id, 'cloud/z/z/z/spot'],
    ],
    ['too few CPUs', ask([spot, desk], { needs: { cpus: 3 }, left: {} }), []],
    ['exactly enough', ask([spot], { needs: { cpus: 2, memoryBytes: 4e9 } }), [spot.id]],
    ['too little memory', ask([spot], { needs: { memoryBytes: 4e9 + 1 } }), []],
    [
      'J-FILE-1 an owned machine has what other jobs leave free',
      ask([desk], { left: { desk: { cpus: 0.5, memoryBytes: 4e9 } } }),
      [],
    ],
    [
      'J-FILE-1 and takes one more when it fits',
      ask([desk], { left: { desk: { cpus: 1, memoryBytes: 1e9 } } }),
      ['desk'],
    ],
    [
      'a GPU of the model, enough of them',
      ask([spot, gpu], { needs: { gpus: { model: 'A100', count: 2 } } }),
      [gpu.id],
    ],
    ['too few GPUs', ask([gpu], { needs: { gpus: { model: 'A100', count: 3 } } }), []],
    ['another model', ask([gpu], { needs: { gpus: { model: 'H100', count: 1 } } }), []],
    ['a container image', ask([spot], { needs: { image: 'python:3.12' } }), []],
    [
      'J-RUN-3 within the job’s pattern',
      ask([spot, cheap, desk], {
        spec: { needs: plain, on: { pattern: 'cloud/eu/b', pinned: false }, settings: builtIn },
      }),
      [cheap.id],
    ],
    [
      'J-RES-1 a resume’s pattern goes before the job’s own',
      ask([spot, cheap], {
        on: 'cloud/eu/a',
        spec: { needs: plain, on: { pattern: 'cloud/eu/b', pinned: false }, settings: builtIn },
      }),
      [spot.id],
    ],
    ['--no-spot', ask([spot, dear, desk], { market: 'on-demand' }), ['desk', dear.id]],
    ['--spot-only', ask([spot, dear], { market: 'spot' }), [spot.id]],
    [
      'an offer that is spelled out goes before --no-spot',
      ask([spot, dear], { market: 'on-demand', on: spot.id }),
      [spot.id],
    ],
    [
      'J-RUN-5 one that was tried in this placement is not tried again',
      ask([spot, cheap], { tried: [{ offer: cheap.id, why: 'no capacity' }] }),
      [spot.id],
    ],
  ] as const)('%s', (_, { fitting }, expected) => {
    expect(ids(fitting)).toEqual(expected)
  })

  test('every offer that does not fit has its reason, with the numbers', () => {
    const { passedOver } = ask([spot, gpu, desk, cheap], {
      needs: { cpus: 3 },
      tried: [{ offer: cheap.id, why: 'no capacity' }],
      left: { desk: { cpus: 0.5, memoryBytes: 1e9 } },
    })
    expect(passedOver).toEqual([
      { offer: spot.id, why: '3 CPUs needed, 2 there' },
      { offer: gpu.id, why: '3 CPUs needed, 2 there' },
      { offer: 'desk', why: '3 CPUs needed, 0.5 left' },
      { offer: cheap.id, why: 'no capacity' },
    ])
  })

  test('each offer either fits or has a reason against it, and the choice does not depend on the order in which they come', () => {
    const some = fc.uniqueArray(
      fc.record({
        id: fc.string({ minLength: 1, maxLength: 5 }).map((name) => `cloud/eu/${name}/small/spot`),
        price: fc.integer({ min: 0, max: 3 }).map((micros) => ({ micros, currency: 'USD' })),
        cpus: fc.integer({ min: 0, max: 3 }),
      }),
      { selector: ({ id }) => id, maxLength: 8 },
    )
    fc.assert(
      fc.property(some, (differs) => {
        const offers = differs.map(anOffer)
        const { fitting, passedOver } = ask(offers)
        expect([...ids(fitting), ...passedOver.map(({ offer }) => offer)].sort()).toEqual(ids(offers).sort())
        expect(ids(ask(offers.toReversed()).fitting)).toEqual(ids(fitting))
        expect(fitting.map(({ price }) => price.micros)).toEqual(
          fitting.map(({ price }) => price.micros).sort((a, b) => a - b),
        )
      }),
    )
  })
})

test.each([
  ['none', [], 'there are no offers'],
  ['one', [{ offer: 'a', why: 'full' }], 'a: full'],
  [
    'four: three and a count',
    ['a', 'b', 'c', 'd'].map((offer) => ({ offer, why: 'full' })),
    'a: full; b: full; c: full; and 1 more',
  ],
])('refusals in words: %s', (_, passedOver, words) => {
  expect(refusalsInWords(passedOver)).toBe(words)
})
