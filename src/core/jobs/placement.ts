import type { JobSpec, Offer, PassedOver } from './model.ts'
import { within } from './pattern.ts'

export interface Choice {
  /** cheapest first: all that fit */
  readonly fitting: readonly Offer[]
  /** all others, each with the first reason against it */
  readonly passedOver: readonly PassedOver[]
}

export interface PlacementQuestion {
  readonly spec: Pick<JobSpec, 'needs' | 'on' | 'settings'>
  /** `--on` of a move or a resume, in place of the job's own; null: the job's own */
  readonly on: string | null
  readonly offers: readonly Offer[]
  readonly connections: readonly string[]
  /** tried in this placement already, and why they were not to be had */
  readonly tried: readonly PassedOver[]
  /** what owned machines have left: CPUs and memory that no job of ours holds; absent: all of it */
  readonly left: Readonly<Record<string, { readonly cpus: number; readonly memoryBytes: number }>>
}

/** Which offers fit a job, cheapest first (J-RUN-5). Equal prices: an owned machine first, then by name, so that the choice is the same each time. */
export function choose(question: PlacementQuestion): Choice {
  const fitting: Offer[] = []
  const passedOver: PassedOver[] = []
  for (const offer of question.offers) {
    const against = reasonAgainst(offer, question)
    if (against === null) fitting.push(offer)
    else passedOver.push({ offer: offer.id, why: against })
  }
  fitting.sort((a, b) => a.price.micros - b.price.micros || order(a) - order(b) || (a.id < b.id ? -1 : 1))
  return { fitting, passedOver }
}

const order = (offer: Offer): number => (offer.market === 'owned' ? 0 : 1)

function reasonAgainst(offer: Offer, { spec, on, connections, tried, left }: PlacementQuestion): string | null {
  const pattern = on ?? spec.on?.pattern ?? null
  if (pattern !== null && !within(pattern, offer, connections)) return `not within ${pattern}`
  const spelledOut = pattern !== null && pattern === offer.id
  if (
    !spelledOut &&
    spec.settings.market !== 'any' &&
    offer.market !== 'owned' &&
    offer.market !== spec.settings.market
  )
    return `only ${spec.settings.market} is wanted`
  const before = tried.find((one) => one.offer === offer.id)
  if (before) return before.why
  const { needs } = spec
  const cpus = left[offer.id]?.cpus ?? offer.cpus
  const memoryBytes = left[offer.id]?.memoryBytes ?? offer.memoryBytes
  if (needs.cpus > cpus) return `${needs.cpus} CPUs needed, ${cpus} ${offer.market === 'owned' ? 'left' : 'there'}`
  if (needs.memoryBytes > memoryBytes)
    return `${needs.memoryBytes} bytes of memory needed, ${memoryBytes} ${offer.market === 'owned' ? 'left' : 'there'}`
  if (
    needs.gpus &&
    (offer.gpus === null || offer.gpus.model !== needs.gpus.model || offer.gpus.count < needs.gpus.count)
  )
    return `${needs.gpus.count} ${needs.gpus.model} needed, ${offer.gpus ? `${offer.gpus.count} ${offer.gpus.model}` : 'none'} there`
  if (needs.image !== null) return 'container images are not run there'
  return null
}

/** The three nearest reasons in one clause, for a sentence; the rest is counted. */
export const refusalsInWords = (passedOver: readonly PassedOver[]): string => {
  if (passedOver.length === 0) return 'there are no offers'
  const told = passedOver.slice(0, 3).map(({ offer, why }) => `${offer}: ${why}`)
  const more = passedOver.length - told.length
  return told.join('; ') + (more > 0 ? `; and ${more} more` : '')
}

/** Whether a machine there may be taken from a job, or ends by itself: a job on it wants a way of carrying its state (J-RUN-7). */
export const canBeTaken = ({ market, lifetime }: Offer): boolean =>
  market === 'spot' || (market === 'on-demand' && lifetime !== null)
