import { statfs } from 'node:fs/promises'
import type { DoctorView } from '../../contract/schemas.ts'
import { bytesInWords, durationInWords } from '../../core/reasons.ts'
import type { ApiOptions } from './index.ts'

type Check = DoctorView['checks'][number]

const good = (name: string, sentence: string, facts: Check['facts'] = {}): Check => ({
  name,
  is: 'good',
  sentence,
  advice: null,
  facts,
})
const not = (
  is: 'warning' | 'broken',
  name: string,
  sentence: string,
  advice: string,
  facts: Check['facts'] = {},
): Check => ({ name, is, sentence, advice, facts })

/** Below this much room on the disk a save may fail. */
const roomWanted = 1_000_000_000

/** What the control plane knows of itself: can it remember, keep checkpoints, reach its places and its agents. */
export async function doctor(options: ApiOptions): Promise<DoctorView> {
  const { context, home, startedAt } = options
  const checks: Check[] = [
    good('control plane', `it serves since ${durationInWords(context.clock.now() - startedAt)}`, { pid: options.pid }),
  ]
  checks.push(
    await store(options),
    await checkpoints(options),
    await disk(home),
    ...(await places(options)),
    await agents(options),
  )
  return { checks }
}

async function store({ context }: ApiOptions): Promise<Check> {
  const applied = await context.store.apply({ changes: [], events: [] })
  return applied.is === 'applied'
    ? good('store', 'it takes what is written', { events: applied.seq })
    : not(
        'broken',
        'store',
        `it does not take what is written: ${applied.is}`,
        'Look into the log of the control plane.',
      )
}

/** Everything rests on this: of many that take one slot at once, one wins. */
async function checkpoints({ context }: ApiOptions): Promise<Check> {
  const advice =
    'Until this is mended nothing can be suspended, resumed or moved. The directory is `checkpoints` in the data directory.'
  try {
    const problem = await context.chains.check()
    return problem === null
      ? good('checkpoints', 'their directory keeps its promise: of 16 that took one slot at once, one won')
      : not('broken', 'checkpoints', problem, advice)
  } catch (error) {
    return not('broken', 'checkpoints', error instanceof Error ? error.message : String(error), advice)
  }
}

async function disk(home: string): Promise<Check> {
  const { bavail, bsize } = await statfs(home)
  const free = bavail * bsize
  const facts = { free_bytes: free }
  return free < roomWanted
    ? not(
        'warning',
        'disk',
        `only ${bytesInWords(free)} free where checkpoints are kept`,
        'Make room: a save that does not fit fails, and its job runs on unsaved.',
        facts,
      )
    : good('disk', `${bytesInWords(free)} free where checkpoints are kept`, facts)
}

async function places({ context }: ApiOptions): Promise<Check[]> {
  return Promise.all(
    [...context.providers].map(async ([connection, provider]) => {
      try {
        const offers = await provider.offers({ cpus: 0, memoryBytes: 0, diskBytes: 0, gpus: null, image: null })
        return good(`connection ${connection}`, `${offers.length} ${offers.length === 1 ? 'offer' : 'offers'}`, {
          offers: offers.length,
        })
      } catch (error) {
        return not(
          'broken',
          `connection ${connection}`,
          error instanceof Error ? error.message : String(error),
          'Nothing can be started there until this is mended.',
        )
      }
    }),
  )
}

async function agents({ context }: ApiOptions): Promise<Check> {
  const bound = (await context.store.attemptsAlive()).filter(({ state }) => state === 'bound')
  const silent = bound.filter((attempt) => !context.agents.heard(attempt).connected)
  const unconfined = bound.filter((attempt) => context.agents.heard(attempt).machine?.confines === 'none')
  if (silent.length > 0)
    return not(
      'warning',
      'agents',
      `${silent.length} of ${bound.length} machines with jobs cannot be heard`,
      'Each job there goes on until its lease runs out; `portal show JOB` says which.',
      { attempts: silent.map(({ id }) => id) },
    )
  if (unconfined.length > 0)
    return not(
      'warning',
      'agents',
      'a machine cannot promise to end all processes of a job',
      'Allow user namespaces there; until then a lost job is given away only on a person’s word.',
      { attempts: unconfined.map(({ id }) => id) },
    )
  return good(
    'agents',
    bound.length === 0
      ? 'no job runs'
      : bound.length === 1
        ? 'the machine with a job is heard'
        : `all ${bound.length} machines with jobs are heard`,
  )
}
