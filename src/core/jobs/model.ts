import type { Money } from '../money/index.ts'
import type { Why } from '../reasons.ts'
import type { Duration, Instant } from '../time/index.ts'
import type { JobSettings } from './settings.ts'

/** Where a job may be placed, and what it costs there. One row of `portal offers`. */
export interface Offer {
  /** `connection/region/zone/type/market`, or the name of an owned machine: the spelling that pins a job */
  readonly id: string
  readonly connection: string
  readonly provider: string
  readonly region: string
  readonly zone: string
  readonly type: string
  readonly market: Market
  readonly price: Money
  /** how long before it is taken the machine is told; null: no notice, or one that cannot be used */
  readonly notice: Duration | null
  /** after this long the provider ends it; null: never */
  readonly lifetime: Duration | null
  readonly cpus: number
  readonly memoryBytes: number
  readonly gpus: { readonly model: string; readonly count: number } | null
}

export type Market = 'spot' | 'on-demand' | 'owned'

export interface Needs {
  readonly cpus: number
  readonly memoryBytes: number
  readonly diskBytes: number
  readonly gpus: { readonly model: string; readonly count: number } | null
  readonly image: string | null
}

/** What was asked for, once; never changed afterwards but by a person's word (`resume --on`, `--cpu`, …). */
export interface JobSpec {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** the sha256 of the archive of the working directory that was sent along; null: an empty one */
  readonly workdir: string | null
  /** paths inside the working directory that the job writes and wants to keep (J-FILE-2) */
  readonly outputs: readonly string[]
  readonly needs: Needs
  /** `--on`: narrows placement, or pins the job when it spells out one offer (J-RUN-3) */
  readonly on: { readonly pattern: string; readonly pinned: boolean } | null
  readonly checkpoint: 'auto' | 'sdk' | 'none'
  readonly settings: JobSettings
}

/** Who asked for a change: a person by name, or a policy by name. */
export type Asker = { readonly person: string } | { readonly policy: string }

export type JobState =
  | { readonly is: 'queued'; readonly since: Instant; readonly why: Why }
  | { readonly is: 'starting'; readonly since: Instant; readonly token: number }
  /** `token` null: no machine was found yet; `was` is what it falls back to when the resume fails */
  | {
      readonly is: 'resuming'
      readonly since: Instant
      readonly token: number | null
      readonly by: Asker
      readonly on: string | null
      /** a placement that finds nothing is tried again until then; null: it fails at once */
      readonly waitUntil: Instant | null
      readonly was: Extract<JobState, { is: 'suspended' | 'stopped' | 'failed' }>
    }
  | { readonly is: 'running'; readonly since: Instant; readonly unreachableSince: Instant | null }
  | { readonly is: 'moving' | 'suspending'; readonly since: Instant; readonly move: string }
  | {
      readonly is: 'suspended'
      readonly since: Instant
      readonly by: Asker
      readonly why: Why
      readonly expiresAt: Instant
    }
  | { readonly is: 'succeeded'; readonly since: Instant }
  | { readonly is: 'failed'; readonly since: Instant; readonly why: Why; readonly resumableUntil: Instant | null }
  | {
      readonly is: 'stopped'
      readonly since: Instant
      readonly by: Asker
      readonly why: Why
      readonly resumableUntil: Instant | null
    }

export type JobStateName = JobState['is']
export const endedStates = ['succeeded', 'failed', 'stopped'] as const satisfies readonly JobStateName[]
export const isEnded = ({ is }: JobState): boolean => (endedStates as readonly string[]).includes(is)

/** An offer that was tried or looked at and not taken, and why. */
export interface PassedOver {
  readonly offer: string
  readonly why: string
}

/** A committed checkpoint: the newest known good one is a job's base. */
export interface Base {
  readonly slot: number
  /** the attempt that wrote it */
  readonly token: number
  readonly savedAt: Instant
  readonly bytes: number
  readonly storedBytes: number
  /** null until it was checked against every hash */
  readonly verifiedAt: Instant | null
}

/** What a person asked for and what was not carried out yet. One at a time; a stop replaces the others. */
export type Wish =
  | { readonly to: 'suspend'; readonly by: Asker; readonly at: Instant }
  | { readonly to: 'move'; readonly by: Asker; readonly at: Instant; readonly on: string | null }
  | { readonly to: 'stop'; readonly by: Asker; readonly at: Instant; readonly keep: boolean; readonly why: Why }

export interface JobRecord {
  readonly id: string
  /** unique among all jobs; what people type */
  readonly name: string
  /** raised by one with every write; orders to agents carry it */
  readonly version: number
  readonly spec: JobSpec
  readonly state: JobState
  readonly wish: Wish | null
  /** the last attempt token drawn; the next start intended takes one more */
  readonly lastToken: number
  /** the attempt that may execute; null between machines */
  readonly current: number | null
  readonly base: Base | null
  /** the highest slot of the chain known to be taken: a manifest or a seal */
  readonly lastSlot: number
  readonly createdAt: Instant
  /** from when both counts of the time limit run: the creation, or a resume after the limit ended it (J-TTL-3) */
  readonly ttlFrom: Instant
  /** the exit status that the job ended with */
  readonly exit: Exit | null
  /** the last move that was given up: named to a source that waits for its outcome */
  readonly abortedMove: string | null
  /** the open move or suspension */
  readonly move: string | null
  /** offers that refused this placement, so that the next one is tried; cleared when the job is placed or waits */
  readonly passedOver: readonly PassedOver[]
  /** what people should know and cannot see otherwise, once per change */
  readonly warnings: readonly Why[]
  /** when the loop looks at it again at the latest */
  readonly due: Instant
}

export type Exit = { readonly code: number; readonly at: Instant } | { readonly signal: string; readonly at: Instant }

/**
 * One stay of a job on one machine (an attempt), and that machine as far as it serves this stay. Its id is client token,
 * tag and fencing token in one. States only move forward.
 */
export interface AttemptRecord {
  /** `JOBID.TOKEN` */
  readonly id: string
  readonly jobId: string
  readonly token: number
  readonly version: number
  readonly state: 'intended' | 'started' | 'ready' | 'bound' | 'ending' | 'gone'
  readonly offer: Offer
  /** what it was taken for */
  readonly needs: Needs
  /** what the provider calls the machine, once it answered */
  readonly machineId: string | null
  /** which agent serves it: the attempt's own on a rented machine, the host's on an owned one */
  readonly agentId: string
  readonly intendedAt: Instant
  readonly startedAt: Instant | null
  readonly boundAt: Instant | null
  /** the slot that it starts from; null: from the beginning */
  readonly from: number | null
  /** when it may execute: set by the write that makes it current */
  readonly ranFrom: Instant | null
  /** when it stopped executing, or was given up */
  readonly ranUntil: Instant | null
  readonly endingAt: Instant | null
  readonly goneAt: Instant | null
  /** the last lease granted; the machine's own hard stop is never later than the control plane's reckoning of it */
  readonly lease: { readonly grantedAt: Instant; readonly length: Duration } | null
  /** money set aside for it at its connection, settled when it is gone */
  readonly committed: Money
  readonly spent: Money | null
  /** up to which offset its log is the job's; null: all of it */
  readonly logLimit: number | null
  readonly exit: Exit | null
}

/**
 * The one way a job leaves a machine with its state: to another machine, or into safe keeping (no target).
 * It has one outcome, written once; nothing that depends on the outcome is sent before it is durable.
 */
export interface MoveRecord {
  readonly id: string
  readonly jobId: string
  readonly version: number
  readonly kind: 'move' | 'suspension'
  readonly by: Asker
  readonly why: Why
  /** where to, by pattern or offer; null: the cheapest that fits */
  readonly on: string | null
  readonly source: number
  readonly target: number | null
  /** what was asked of the agents last; each is recorded before it is sent */
  readonly step: 'probe' | 'target' | 'hold' | 'restore' | 'promise' | 'seal' | 'committed' | 'aborted'
  readonly slot: number | null
  /** the slot that sealed the chain behind `slot` */
  readonly seal: number | null
  readonly outcome: 'committed' | 'aborted' | null
  readonly abortWhy: Why | null
  /** the values that the checkpoint could not carry */
  readonly refused: readonly RefusedValue[]
  /** when each step was begun, for the record of how long each took */
  readonly times: Readonly<Partial<Record<MoveRecord['step'] | 'held' | 'released', Instant>>>
}

/** A value that a checkpoint cannot carry (K-STRICT-1). */
export interface RefusedValue {
  /** `state.loader.workers[2].sock` */
  readonly path: string
  readonly type: string
  readonly reason: string
  readonly advice: string
}
