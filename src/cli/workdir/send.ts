import { lstatSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Client } from '../../contract/client.ts'
import { userHome } from '../../contract/home.ts'
import type { Cli } from '../context.ts'
import { homeOf } from '../control/reach.ts'
import { failed, usage } from '../failure.ts'
import { count, plain, size } from '../format.ts'
import { progress } from '../progress.ts'
import { listWorkdir, WorkdirError, type Entry, type Listing } from './list.ts'
import { knownArchive, rememberArchive } from './remember.ts'

/** How many of the entries left out are named. */
const namedAtMost = 5

/**
 * Looks at the directory that goes along with a job. Without being told to, neither a home directory nor the root is sent.
 *
 * @param asked `--workdir`; undefined: the current directory
 */
export const lookAtWorkdir = async (
  cli: Cli,
  asked: string | undefined,
): Promise<{ directory: string; listing: Listing }> => {
  const directory = resolve(cli.directory, asked ?? '.')
  if (directory === homeOf(cli) || directory.startsWith(`${homeOf(cli)}/`))
    throw usage(
      `${directory} lies in Portal's data directory, which holds its keys`,
      'go into the folder of your project',
    )
  if (asked === undefined && isTooMuch(directory, userHome(cli.env)))
    throw usage(
      `${directory} is not sent along as a working directory without being named`,
      'go into the folder of your project, name one with --workdir DIR, or send nothing with --no-workdir',
    )
  try {
    const listing = await listWorkdir(directory, { home: homeOf(cli) })
    tellLeftOut(cli, listing)
    return { directory, listing }
  } catch (error) {
    if (!(error instanceof WorkdirError)) throw error
    const biggest = error.biggest.map((top) => `${plain(top.path)}  ${size(top.bytes)} in ${count(top.files, 'file')}`)
    throw failed('workdir_unfit', error.message, [...biggest, error.advice].join('\n'), { biggest: error.biggest })
  }
}

const isTooMuch = (directory: string, home: string | null): boolean =>
  directory === dirname(directory) || (home !== null && resolve(home) === directory)

const tellLeftOut = (cli: Cli, { leftOut }: Listing): void => {
  for (const { path, why } of leftOut.slice(0, namedAtMost))
    cli.note(`${cli.errorColors.yellow('portal: warning:')} ${plain(path)} is left out: ${plain(why)}`)
  const rest = leftOut.length - namedAtMost
  if (rest > 0) cli.note(`${cli.errorColors.yellow('portal: warning:')} and ${rest} more are left out`)
}

/** The archive of these very files, where they were packed before and nothing touched them since: they are not even read. */
export const rememberedWorkdir = (home: string, directory: string, { entries }: Listing): string | null =>
  entries.length === 0 ? null : knownArchive(home, directory, entries)

/**
 * Packs the directory, and sends its archive unless the control plane has it already.
 *
 * @returns its sha256; null where there is nothing in it
 */
export const sendWorkdir = async (
  cli: Cli,
  client: Client,
  home: string,
  directory: string,
  listing: Listing,
): Promise<string | null> => {
  if (listing.entries.length === 0) return null
  const line = progress(cli, `packing ${count(listing.files, 'file')} (${size(listing.bytes)})`)
  try {
    const { bytes, sha256 } = await pack(directory, listing.entries)
    if (!(await client.hasWorkdir({ params: { sha256 } }))) {
      line.step(`sending ${size(bytes.length)}`)
      await client.putWorkdir({ params: { sha256 }, upload: bytes, timeoutMs: 120_000 })
    }
    rememberArchive(home, directory, listing.entries, sha256)
    return sha256
  } finally {
    line.done()
  }
}

const pack = async (directory: string, entries: readonly Entry[]) => {
  const { packWorkdir } = await import('./pack.ts')
  try {
    return await packWorkdir(directory, entries)
  } catch (error) {
    const { path } = error as { readonly path?: string }
    const gone = path !== undefined && lstatSync(path, { throwIfNoEntry: false }) === undefined
    throw failed(
      'workdir_changed',
      `${path ?? directory} ${gone ? 'vanished' : 'could not be read'} while it was packed: ${error instanceof Error ? error.message : String(error)}`,
      'start again when nothing writes there, or leave it out with a line in .portalignore',
    )
  }
}
