import { readFileSync } from 'node:fs'
import type { AttemptReport } from '../contract/agent.ts'
import { minute, second, type Duration } from '../core/time/index.ts'
import { type JobCgroups, usageOf } from './keeper/cgroup.ts'
import { descendantsOf } from './keeper/processes.ts'

/** Averages are taken over this long (J-IDLE-3). */
const window: Duration = minute
/** At least so much must have been seen before anything is said: unknown is never zero. */
const least: Duration = 2 * second
const ticksPerSecond = 100
const pageBytes = 4096

/** What a job has used so far; null: nothing could be measured. */
export interface Used {
  /** ms */
  readonly cpu: Duration | null
  readonly memoryBytes: number | null
  readonly memoryPeakBytes: number | null
}

/** By its cgroup where it has one that counts, else by its processes below `first` (whose own ticks hold those it reaped). */
export const usedBy = (cgroups: JobCgroups, first: number | null): Used => {
  const kernel = usageOf(cgroups)
  if ((kernel.cpuMs !== null && kernel.memoryBytes !== null) || first === null)
    return { cpu: kernel.cpuMs, memoryBytes: kernel.memoryBytes, memoryPeakBytes: kernel.memoryPeakBytes }
  const processes = descendantsOf(first)
  if (processes.length === 0) return { cpu: kernel.cpuMs, memoryBytes: kernel.memoryBytes, memoryPeakBytes: null }
  const ticks = reapedBy(first) + processes.reduce((sum, process) => sum + process.ticks, 0)
  const pages = processes.reduce((sum, process) => sum + process.residentPages, 0)
  return {
    cpu: kernel.cpuMs ?? (ticks * 1000) / ticksPerSecond,
    memoryBytes: kernel.memoryBytes ?? pages * pageBytes,
    memoryPeakBytes: kernel.memoryPeakBytes,
  }
}

const reapedBy = (pid: number): number => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return Number(fields[13]) + Number(fields[14])
  } catch {
    return 0
  }
}

interface Look {
  /** time in which the job was left to itself, ms */
  readonly time: Duration
  readonly cpu: Duration
}

/**
 * Makes averages of what is measured now and then. While Portal itself makes the job work (a probe, a save), neither the
 * time nor the CPU counts.
 */
export class Meter {
  #looks: Look[] = []
  #before: { readonly at: Duration; readonly cpu: Duration } | null = null
  #time: Duration = 0
  #cpu: Duration = 0
  #memory: number | null = null
  #peak = 0
  #ours = 0

  /** Portal's own work begins (`true`) or is over; what is used meanwhile is not the job's. */
  ours(on: boolean, used: Used, at: Duration): void {
    this.#account(used, at)
    this.#ours += on ? 1 : -1
  }

  /** @param at monotonic */
  look(used: Used, at: Duration): void {
    this.#account(used, at)
    if (used.cpu !== null && this.#ours === 0) {
      this.#looks.push({ time: this.#time, cpu: this.#cpu })
      while ((this.#looks[1]?.time ?? Infinity) <= this.#time - window) this.#looks.shift()
    }
    this.#memory = used.memoryBytes
    this.#peak = Math.max(this.#peak, used.memoryPeakBytes ?? 0, used.memoryBytes ?? 0)
  }

  /** It stood still since the last look: neither time nor CPU. */
  pass({ cpu }: Used, at: Duration): void {
    if (cpu !== null) this.#before = { at, cpu }
  }

  /** The average of the last minute, or of what there is; null: not enough is known. */
  sample(wall: number): AttemptReport['sample'] {
    const [from] = this.#looks
    const to = this.#looks.at(-1)
    if (!from || !to || to.time - from.time < least || this.#memory === null) return null
    return {
      until: wall,
      cpu: Math.max(0, (to.cpu - from.cpu) / (to.time - from.time)),
      memoryBytes: Math.round(this.#memory),
      memoryPeakBytes: Math.round(this.#peak),
    }
  }

  #account({ cpu }: Used, at: Duration): void {
    if (cpu === null) return
    if (this.#before && this.#ours === 0) {
      this.#time += at - this.#before.at
      this.#cpu += Math.max(0, cpu - this.#before.cpu)
    }
    this.#before = { at, cpu }
  }
}
