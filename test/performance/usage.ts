import { readdirSync, readFileSync } from 'node:fs'

/** What the kernel counts in: hundredths of a second, on every Linux that Node runs on. */
const tick_ms = 10

interface Stat {
  readonly pid: number
  readonly parent: number
  /** CPU of its own, and of the children that it waited for, ms */
  readonly cpu_ms: number
}

const statOf = (pid: number): Stat | null => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const at = (field: number): number => fields[field - 3] ?? 0
    return { pid, parent: at(4), cpu_ms: (at(14) + at(15) + at(16) + at(17)) * tick_ms }
  } catch {
    return null
  }
}

/** CPU of a process and of the children that it waited for, ms, in steps of 10. */
export const cpuOf = (pid: number): number => statOf(pid)?.cpu_ms ?? 0

/** Everything below a process, without it, up to where `stops` says that it is somebody else's. */
export const below = (root: number, stops: (pid: number) => boolean = () => false): readonly number[] => {
  const all = readdirSync('/proc')
    .map((name) => (Number(name) > 0 ? statOf(Number(name)) : null))
    .filter((stat) => stat !== null)
  const found: number[] = []
  for (let look = [root]; look.length > 0;) {
    const parents = new Set(look)
    look = all.filter(({ pid, parent }) => parents.has(parent) && !stops(pid)).map(({ pid }) => pid)
    found.push(...look)
  }
  return found
}

export const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

/** KiB resident: as the kernel counts pages (`resident`), shared ones split among their users (`share`), its own alone (`own`). */
export interface Memory {
  readonly resident: number
  readonly share: number
  readonly own: number
}

export const memoryOf = (pid: number): Memory => {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0)
  return { resident: field('Rss'), share: field('Pss'), own: field('Private_Clean') + field('Private_Dirty') }
}
