import type { Logger } from 'pino'
import type { CheckpointStore } from '../checkpoints/index.ts'
import type { Bootstrap, ToControl } from '../contract/agent.ts'
import type { Instant } from '../core/time/index.ts'
import type { Clocks } from './clock.ts'
import type { Confinement } from './keeper/confine.ts'

/** What all attempts of one agent share. */
export interface Around {
  /** the agent's folder: the bootstrap's */
  readonly data: string
  readonly bootstrap: Bootstrap
  readonly bootId: string
  readonly clocks: Clocks
  readonly confinement: Confinement
  /** path of the keeper's script */
  readonly keeper: string
  /** the folder of the SDKs; null: there is none */
  readonly sdk: string | null
  readonly log: Logger
  readonly store: () => Promise<CheckpointStore>
  notice(): { readonly endsAt: Instant } | null
  /** False: no connection. */
  send(message: ToControl): boolean
  /** the connection takes more */
  ready(): boolean
  /** something that is reported has changed */
  changed(): void
}
