import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { knownPatterns, pins, within } from './pattern.ts'
import { anOffer, anOwnedOffer } from './testing.ts'

const at = (id: string, provider = 'aws') => anOffer({ id, connection: id.split('/')[0] as string, provider })
const spot = at('work/us-east-1/a/large/spot')
const desk = anOwnedOffer({ provider: 'ssh' })

describe('J-RUN-3 what pins, by its spelling', () => {
  test.each([
    ['an offer in full, market included', 'work/us-east-1/a/large/spot', true],
    ['the same on demand', 'work/us-east-1/a/large/on-demand', true],
    ['one that is not offered today', 'work/mars/a/large/spot', true],
    ['an owned machine’s name', 'desk', true],
    ['without the market', 'work/us-east-1/a/large', false],
    ['with a market that there is none of', 'work/us-east-1/a/large/owned', false],
    ['a connection', 'work', false],
    ['a part left open', 'work/*/a/large/spot', false],
    ['all parts left open but the market', 'work/*/*/*/spot', false],
    ['more than there is', 'work/us-east-1/a/large/spot/more', false],
    ['nothing', '', false],
  ] as const)('%s', (_, pattern, expected) => {
    expect(pins(pattern, ['desk'])).toBe(expected)
  })
})

describe('J-RUN-3 what is within a pattern', () => {
  test.each([
    ['its connection', 'work', spot, true],
    ['its provider', 'aws', spot, true],
    ['its region', 'work/us-east-1', spot, true],
    ['its region, by the provider’s name', 'aws/us-east-1', spot, true],
    ['another region', 'work/us-west-2', spot, false],
    ['the beginning of a word', 'work/us-east', spot, false],
    ['any region', 'work/*/a', spot, true],
    ['spelled out', 'work/us-east-1/a/large/spot', spot, true],
    ['the other market', 'work/us-east-1/a/large/on-demand', spot, false],
    ['more than it has', 'work/us-east-1/a/large/spot/more', spot, false],
    ['an owned machine by its name', 'desk', desk, true],
    ['an owned machine has no parts', 'desk/us-east-1', desk, false],
    ['another connection', 'home', spot, false],
    ['nothing', '', spot, false],
    ['a part that is empty', 'work/', spot, false],
  ] as const)('%s', (_, pattern, offer, expected) => {
    expect(within(pattern, offer, ['work', 'home', 'desk'])).toBe(expected)
  })

  test('a connection’s name goes before a provider’s', () => {
    const named = at('aws/us-east-1/a/large/spot', 'aws')
    expect(within('aws', named, ['aws', 'work'])).toBe(true)
    expect(within('aws', spot, ['aws', 'work'])).toBe(false)
    expect(within('aws', spot, ['work'])).toBe(true)
  })
})

test('every pattern that is offered for completion means the offers that it came from', () => {
  const word = fc.constantFrom('a', 'b', 'us', 'eu')
  const offers = fc.array(
    fc.tuple(word, word, word, word, fc.constantFrom('spot', 'on-demand')).map((parts) => at(parts.join('/'), 'cloud')),
    { minLength: 1, maxLength: 6 },
  )
  fc.assert(
    fc.property(offers, (all) => {
      const connections = all.map(({ connection }) => connection)
      for (const pattern of knownPatterns(all)) expect(all.some((one) => within(pattern, one, connections))).toBe(true)
      for (const { id } of all) expect(knownPatterns(all)).toContain(id)
      expect(knownPatterns(all)).toContain(['cloud', ...(all[0]?.id.split('/').slice(1, 3) ?? [])].join('/'))
    }),
  )
})
