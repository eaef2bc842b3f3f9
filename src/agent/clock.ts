import { uptime } from 'node:os'
import { second, type Duration } from '../core/time/index.ts'
import type { Now } from './model.ts'

/** The three clocks of a machine, ms. */
export interface Clocks {
  /** goes on while the machine sleeps; begins with the machine */
  boot(): Duration
  /** stands still while the machine sleeps */
  monotonic(): Duration
  wall(): number
}

export const systemClocks: Clocks = {
  boot: () => uptime() * 1000,
  monotonic: () => performance.now(),
  wall: () => Date.now(),
}

export const nowOf = (clocks: Clocks): Now => ({ boot: clocks.boot(), wall: clocks.wall() })

/** So much may the other clocks run ahead of the monotonic one between two looks: `/proc/uptime` has 10 ms, NTP slews. */
export const jumpOver: Duration = 2 * second

/**
 * Finds that the machine slept, was paused, or had its clock set, by comparing clocks between looks. Small differences do
 * not add up: each look begins anew.
 */
export const jumpWatch = (clocks: Clocks): (() => Duration) => {
  const read = () => ({ boot: clocks.boot(), monotonic: clocks.monotonic(), wall: clocks.wall() })
  let before = read()
  return () => {
    const after = read()
    const passed = after.monotonic - before.monotonic
    const ahead = Math.max(after.boot - before.boot - passed, after.wall - before.wall - passed)
    before = after
    return ahead > jumpOver ? ahead : 0
  }
}
