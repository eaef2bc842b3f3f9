import type { Offer } from './model.ts'

/**
 * `--on PATTERN` (J-RUN-3). A pattern is the first parts of an offer's id (`practice/eu/eu-a`), with the connection's name or the
 * provider's in front. One that spells out an offer in full, market included, pins; an owned machine's name is exact.
 */
export const parts = (pattern: string): readonly string[] => pattern.split('/')

/** Whether a pattern spells out one offer, market included: by its spelling, not by how many offers match today. */
export const pins = (pattern: string, owned: readonly string[]): boolean => {
  const spelled = parts(pattern)
  const inFull = spelled.length === 5 && !spelled.includes('*') && ['spot', 'on-demand'].includes(spelled[4] as string)
  return inFull || owned.includes(pattern)
}

/** Whether an offer is within a pattern. A connection's name goes before a provider's. */
export function within(pattern: string, offer: Offer, connections: readonly string[]): boolean {
  const spelled = parts(pattern)
  const id = parts(offer.id)
  const [first] = spelled
  const head = connections.includes(first as string) ? offer.connection : offer.provider
  return (
    first === head &&
    spelled.length <= Math.max(id.length, 1) &&
    spelled.slice(1).every((part, i) => part === '*' || part === id[i + 1])
  )
}

/** What can be typed for `--on`: every beginning of every offer's id, with its connection or its provider in front. */
export const knownPatterns = (offers: readonly Offer[]): readonly string[] => {
  const known = new Set<string>()
  for (const { id, provider } of offers) {
    const [connection = '', ...rest] = parts(id)
    for (const head of [connection, provider])
      for (let n = 0; n <= rest.length; n++) known.add([head, ...rest.slice(0, n)].join('/'))
  }
  return [...known]
}
