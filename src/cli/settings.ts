import { usage } from './failure.ts'
import { flag, value, values } from './define.ts'
import { pairs } from './parse.ts'

/** The flags of the settings table that a job can be started with; what they mean is checked by the control plane. */
export interface SettingFlags {
  readonly ttl?: string
  readonly noTtl?: boolean
  readonly noSpot?: boolean
  readonly spotOnly?: boolean
  readonly noSpotPolicy?: boolean
  readonly bitExact?: boolean
  readonly set?: readonly string[]
}

export const settingFlags = {
  ttl: value('stop it once machines have run it this long, as 72h', 'DURATION'),
  noTtl: flag('no time limit'),
  noSpot: flag('never on spot machines'),
  spotOnly: flag('on spot machines only'),
  noSpotPolicy: flag('do not save and suspend it on a notice'),
  bitExact: flag('refuse what would give equal values but not equal bits'),
  set: values('any setting by its key, as checkpoint.keep=7d', 'KEY=VALUE'),
} as const

/** The settings by key, as typed. Two flags that contradict each other are refused. */
export const settingsOf = (flags: SettingFlags): Readonly<Record<string, string>> => {
  if (flags.noSpot && flags.spotOnly) throw usage('--no-spot and --spot-only contradict each other', 'leave one out')
  if (flags.noTtl && flags.ttl !== undefined) throw usage('--no-ttl and --ttl contradict each other', 'leave one out')
  return {
    ...typed(() => pairs(flags.set ?? [], 'KEY=VALUE of a setting')),
    ...(flags.ttl === undefined ? {} : { ttl: flags.ttl }),
    ...(flags.noTtl ? { ttl: 'off' } : {}),
    ...(flags.noSpot ? { market: 'on-demand' } : {}),
    ...(flags.spotOnly ? { market: 'spot' } : {}),
    ...(flags.noSpotPolicy ? { spot: 'off' } : {}),
    ...(flags.bitExact ? { bit_exact: 'on' } : {}),
  }
}

/** Runs a parser of `parse.ts` outside of a flag's own: what it throws is a usage error. */
export const typed = <T>(parse: () => T): T => {
  try {
    return parse()
  } catch (error) {
    if (error instanceof RangeError) throw usage(error.message)
    throw error
  }
}
