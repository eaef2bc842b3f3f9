import type { Bootstrap } from '../core/jobs/agent.ts'
import type { Needs, Offer } from '../core/jobs/model.ts'
import type { Money } from '../core/money/index.ts'
import type { Duration, Instant } from '../core/time/index.ts'

export type { Bootstrap } from '../core/jobs/agent.ts'

/** The row that a start is for: its id is client token and tag in one, with the installation's id. */
export interface StartRequest {
  readonly rowId: string
  readonly installation: string
  readonly offer: Offer
  readonly needs: Needs
  readonly bootstrap: Bootstrap
  /** the machine ends itself at the provider by then at the latest, where the provider can promise that */
  readonly hardStopAfter: Duration
}

export type Observed =
  | { readonly is: 'alive'; readonly machineId: string }
  | { readonly is: 'terminal'; readonly state: string; readonly at: Instant | null }
  | { readonly is: 'not_found' }
  | { readonly is: 'unknown'; readonly error: string }

export interface ListedMachine {
  readonly machineId: string
  readonly rowId: string | null
  readonly installation: string | null
  readonly startedAt: Instant
  readonly state: string
}

export type ProviderErrorKind =
  | 'capacity'
  | 'quota'
  | 'price_changed'
  | 'unauthorized'
  | 'throttled'
  | 'not_found'
  | 'unowned'
  | 'terminal'
  | 'unreachable'

/** The one error that leaves a provider. */
export class ProviderError extends Error {
  readonly kind: ProviderErrorKind
  readonly retryAfter: Duration | null
  constructor(kind: ProviderErrorKind, message: string, retryAfter: Duration | null = null) {
    super(message)
    this.name = 'ProviderError'
    this.kind = kind
    this.retryAfter = retryAfter
  }
}

/** Where a job can run. One folder an adapter; all pass `test/conformance/provider`. */
export interface Provider {
  readonly name: string
  /** whether a machine is rented (Portal starts and ends it) or a person's own (only jobs on it are started and ended) */
  readonly owns: 'rented' | 'owned'
  /** renewable: its hard stop can be moved at the provider; fixed: set once at the start; guest: only the machine itself ends */
  readonly hardStop: 'renewable' | 'fixed' | 'guest'
  /** a start repeated with the same row id gives the same machine */
  readonly idempotentStart: boolean
  /** an ambiguous start is settled after two complete listings this far apart */
  readonly settles: Duration

  /** Everything that could be started now; the caller chooses. Prices as of now. */
  offers(needs: Needs): Promise<readonly Offer[]>
  /** Price and capacity of one offer, read afresh. Throws `capacity`, `not_found`. */
  quote(offer: Offer): Promise<{ readonly price: Money }>
  /** Starts a machine (or, on an owned one, makes sure that its agent runs) for this row. Throws `price_changed` when it costs more than the offer says. */
  start(request: StartRequest): Promise<{ readonly machineId: string }>
  observe(machineId: string): Promise<Observed>
  /** Late or doubled calls do no harm. An owned machine is never ended: there it does nothing. */
  end(machineId: string): Promise<void>
  /** All machines that carry a tag of this kind, complete or an error. */
  list(): Promise<readonly ListedMachine[]>
  /** Moves the machine's hard stop at the provider, where `hardStop` is renewable. */
  renew?(machineId: string, length: Duration): Promise<void>
  close(): Promise<void>
}
