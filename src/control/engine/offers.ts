import type { Needs, Offer } from '../../core/jobs/model.ts'
import type { PlacementQuestion } from '../../core/jobs/placement.ts'
import { parts } from '../../core/jobs/pattern.ts'
import type { Context } from './context.ts'

export interface Market {
  readonly offers: readonly Offer[]
  readonly failed: readonly { readonly connection: string; readonly problem: string }[]
}

/**
 * What all connections offer now. A connection that cannot be asked is named, and does not keep the others back. The practice
 * cloud takes part only where the pattern names it: nobody means to practise who did not say so.
 */
export async function market(context: Context, needs: Needs, pattern: string | null): Promise<Market> {
  const head = pattern === null ? null : (parts(pattern)[0] ?? null)
  const asked = [...context.providers].filter(([connection, { name }]) => {
    if (head === null) return name !== 'practice'
    return context.providers.has(head) ? connection === head : name === head
  })
  const answers = await Promise.all(
    asked.map(async ([connection, provider]) => {
      try {
        return { connection, offers: await provider.offers(needs), problem: null }
      } catch (error) {
        return { connection, offers: [], problem: error instanceof Error ? error.message : String(error) }
      }
    }),
  )
  return {
    offers: answers.flatMap(({ offers }) => offers),
    failed: answers.flatMap(({ connection, problem }) => (problem === null ? [] : [{ connection, problem }])),
  }
}

/** What jobs of ours leave free on owned machines, by offer. */
export async function leftOnOwned(context: Context, offers: readonly Offer[]): Promise<PlacementQuestion['left']> {
  const owned = offers.filter(({ market: kind }) => kind === 'owned')
  if (owned.length === 0) return {}
  const alive = await context.store.attemptsAlive()
  return Object.fromEntries(
    owned.map((offer) => {
      const there = alive.filter((attempt) => attempt.offer.id === offer.id)
      const cpus = there.reduce((sum, { needs }) => sum + needs.cpus, 0)
      const memoryBytes = there.reduce((sum, { needs }) => sum + needs.memoryBytes, 0)
      // sums of decimal fractions carry dust; what is left is told to a thousandth of a core
      return [
        offer.id,
        { cpus: Math.round((offer.cpus - cpus) * 1000) / 1000, memoryBytes: offer.memoryBytes - memoryBytes },
      ]
    }),
  )
}

export const isOwned = (context: Context, connection: string): boolean =>
  context.providers.get(connection)?.owns === 'owned'
