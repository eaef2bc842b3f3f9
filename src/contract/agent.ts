/**
 * What an agent and the control plane say to each other, over one WebSocket that the agent opens at `/api/agent`.
 *
 * Both sides are level-triggered: the agent sends its whole report whenever something in it changed (and after every
 * connect), the control plane sends all orders for the agent's attempts whenever one changed. A message lost, late or
 * doubled changes nothing. An order carries the job's version; the agent keeps the highest it saw, on its disk, and
 * refuses lower ones.
 *
 * Types only here: this travels often; the schemas that check it stand in `agent-schema.ts`.
 */
import type { AttemptOrder, AttemptReport, MachineReport } from '../core/jobs/agent.ts'
import type { Duration } from '../core/time/index.ts'

export type * from '../core/jobs/agent.ts'

export const agentProtocol = 1

export type ToControl =
  | {
      readonly t: 'hello'
      readonly protocol: number
      readonly agentId: string
      readonly bootId: string
      readonly version: string
    }
  | { readonly t: 'report'; readonly machine: MachineReport; readonly attempts: readonly AttemptReport[] }
  /** bytes of an attempt's log from `offset` on, base64; what was acknowledged already may come again */
  | { readonly t: 'log'; readonly attempt: string; readonly offset: number; readonly data: string }
  /** asks for a lease; `nonce` stands for the moment on the agent's own clock at which it asked */
  | { readonly t: 'renew'; readonly attempt: string; readonly nonce: string }

export type ToAgent =
  | { readonly t: 'orders'; readonly attempts: readonly AttemptOrder[] }
  | { readonly t: 'log-ack'; readonly attempt: string; readonly upTo: number }
  | { readonly t: 'granted'; readonly attempt: string; readonly nonce: string; readonly length: Duration }
  /** the attempt is not current any more and never will be: its job is stopped, whatever the agent thinks */
  | { readonly t: 'superseded'; readonly attempt: string }
