import { day, hour, minute, second, type Duration } from '../time/index.ts'

/** The settings that a job runs under, effective values only; where each came from is the control plane's to tell. */
export interface JobSettings {
  readonly ttl: Duration | 'off'
  readonly ttlKeep: Duration
  readonly spot: boolean
  readonly market: 'any' | 'on-demand' | 'spot'
  readonly leaseLength: Duration | 'detached'
  readonly leaseRenew: Duration
  readonly leaseMargin: Duration
  readonly moveHold: Duration
  readonly checkpointKeep: Duration
  readonly safePointWait: Duration
  readonly stopGrace: Duration
  readonly startTimeout: Duration
  readonly restoreTimeout: Duration
  readonly checkin: Duration
  readonly bitExact: boolean
}

export const builtIn: JobSettings = {
  ttl: 72 * hour,
  ttlKeep: 7 * day,
  spot: true,
  market: 'any',
  leaseLength: hour,
  leaseRenew: 10 * minute,
  leaseMargin: 60 * second,
  moveHold: 10 * minute,
  checkpointKeep: 3 * day,
  safePointWait: 10 * minute,
  stopGrace: 30 * second,
  startTimeout: 10 * minute,
  restoreTimeout: 5 * minute,
  checkin: 15 * minute,
  bitExact: false,
}
