import { join } from 'node:path'
import { day, type Duration, type Instant } from '../../../core/time/index.ts'
import { readIfThere, writePrivate } from '../../files.ts'
import type { ProcessIdentity } from '../../processes.ts'
import type { PracticeMachine, PracticeSettings } from '../api.ts'
import { practiceSettings } from '../settings.ts'

/** A machine with what only the cloud itself needs to know. */
export interface MachineRecord extends PracticeMachine {
  /** null until it booted */
  readonly process: ProcessIdentity | null
  readonly folderRemoved: boolean
}

/** All that the cloud remembers. What somebody set stands over what the catalogue says. */
export interface CloudState {
  readonly format: 1
  readonly settings: PracticeSettings
  /** from when times of a trace count that are given as `+SECONDS` */
  readonly traceBegun: Instant
  readonly clockAhead: Duration
  readonly prices: Readonly<Record<string, { readonly micros: number; readonly until: Instant | null }>>
  readonly capacity: Readonly<Record<string, number | null>>
  readonly quotas: Readonly<Record<string, number | null>>
  readonly lifetimes: Readonly<Record<string, Duration | null>>
  readonly notices: Readonly<Record<string, Duration | null>>
  readonly machines: Readonly<Record<string, MachineRecord>>
}

export const untouchedMarket = {
  clockAhead: 0,
  prices: {},
  capacity: {},
  quotas: {},
  lifetimes: {},
  notices: {},
} satisfies Partial<CloudState>

export const freshState = (now: Instant): CloudState => ({
  format: 1,
  settings: practiceSettings({}),
  traceBegun: now,
  ...untouchedMarket,
  machines: {},
})

/** A machine that ended is remembered for a day: so long a repeated start or a late question still finds it. */
export const rememberedFor: Duration = day

const stateFile = (folder: string): string => join(folder, 'state.json')

/** What was remembered last; null: nothing yet. Throws when the file is not of this format, since it may name machines that run. */
export async function loadState(folder: string): Promise<CloudState | null> {
  const text = await readIfThere(stateFile(folder))
  if (text === null) return null
  const state = parsed(text)
  if (!isState(state))
    throw new Error(
      `${stateFile(folder)} is damaged, or was written by another version of Portal; it may name machines that run: end them, then remove it`,
    )
  return state
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

export const saveState = (folder: string, state: CloudState): Promise<void> =>
  writePrivate(stateFile(folder), JSON.stringify(state))

/** The file is private and written whole by this program: its format's number stands for all of it. */
const isState = (value: unknown): value is CloudState =>
  typeof value === 'object' && value !== null && 'format' in value && value.format === 1

export const isLive = ({ state }: PracticeMachine): boolean => state !== 'ended'
