import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Chain, DamageError, type Manifest, OutputsError, restoreOutputs } from '../checkpoints/index.ts'
import type { Around } from './around.ts'
import type { Attempt } from './attempt.ts'
import { jobEnvironment, type JobPlace, whyNotStart } from './environment.ts'
import { ArchiveError, fetchWorkdir, listFiles, saveListing } from './files.ts'
import { keeperOf, keptOf, layOut, startKeeper } from './keeper/index.ts'

/**
 * Brings the working directory, and remembers what was in it. Answers why that can never be; what may work later throws.
 */
export const provide = async ({ state, folder, work }: Attempt, { bootstrap }: Around): Promise<string | null> => {
  const workdir = state.start?.workdir ?? null
  try {
    if (workdir === null) await mkdir(work, { recursive: true, mode: 0o700 })
    else await fetchWorkdir(bootstrap, workdir, folder, work)
  } catch (error) {
    if (error instanceof ArchiveError && error.final) return error.message
    throw error
  }
  // most often the lease is still under way: what the disk takes is spared later
  layOut(folder)
  await saveListing(join(folder, 'files.json'), await listFiles(work))
  return null
}

export interface Launch {
  readonly attempt: Attempt
  readonly around: Around
  /** what it begins from; null: from nothing */
  readonly manifest: (Chain & { readonly manifest: Manifest }) | null
  readonly place: Pick<JobPlace, 'socket' | 'flag'>
  /** false: it is not to be started any more */
  intend(): boolean
  cannot(why: string): void
  over(): void
}

/** How long a keeper, once it is there, may take until its job has begun. */
const patience_ms = 5000

/**
 * Starts an attempt's process under its keeper, and returns when it has begun or cannot. The deadline is written already;
 * what a checkpoint carries of files lies in the working directory before the first line of the job runs.
 */
export const launch = async ({ attempt, around, manifest, place, intend, cannot, over }: Launch): Promise<void> => {
  const { start, token } = attempt.state
  if (!start) return
  if (manifest)
    try {
      await restoreOutputs(manifest, manifest.manifest, attempt.work)
    } catch (error) {
      if (!(error instanceof DamageError || error instanceof OutputsError)) throw error
      const { slot } = manifest.manifest
      return attempt.change({ restoreFailed: { slot, refused: [], why: error.message.slice(0, 4000) } })
    }
  const env = jobEnvironment(process.env, start, { token, sdk: around.sdk, ...place })
  const why = whyNotStart(start.command, attempt.work, env)
  if (why !== null) return cannot(why)
  layOut(attempt.folder)
  if (!intend()) return
  const ended: { is: boolean; error: Error | null } = { is: false, error: null }
  try {
    startKeeper(
      {
        script: around.keeper,
        keeper: attempt.keeper,
        confinement: around.confinement,
        workdir: attempt.work,
        command: start.command,
        env,
      },
      () => {
        ended.is = true
        over()
      },
      (error) => {
        ended.error = error
      },
    )
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'E2BIG') throw error
    return cannot('its command and its variables are longer than this machine takes')
  }
  // without limit until it is seen: what was started is never taken for nothing
  while (!ended.is && keeperOf(attempt.folder) === null) await pause(1)
  const until = performance.now() + patience_ms
  while (!ended.is && keptOf(attempt.folder).is === 'new' && performance.now() < until) await pause(1)
  // too many processes, say: that may pass
  if (ended.error) throw ended.error
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
