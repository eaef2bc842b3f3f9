/** The data directory: created private, refused when others could write into it; its token, and who serves it. */
import { randomBytes } from 'node:crypto'
import { chmod, link, lstat, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { portalError } from '../contract/errors.ts'
import { homeFiles, makeHome, type Serving } from '../contract/home.ts'

export interface Home {
  readonly path: string
  /** the token that people's programs show */
  readonly token: string
  /** Says where the control plane listens. Readers see the old or the new, never half. */
  writeServing(serving: Serving): Promise<void>
  /** Takes it back, if it is still ours: a control plane started meanwhile keeps its own. */
  removeServing(pid: number): Promise<void>
}

/**
 * Opens the data directory, creating it and its token where they are missing.
 * Throws `home_unsafe` for a directory that is another user's, or that others may write into: who can write there can
 * take every job and every token.
 */
export async function openHome(path: string): Promise<Home> {
  makeHome(path)
  await refuseUnsafe(path)
  const token = await tokenOf(homeFiles.token(path))
  return {
    path,
    token,
    async writeServing(serving) {
      const file = homeFiles.serving(path)
      const partial = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`
      await writeWhole(partial, `${JSON.stringify(serving)}\n`)
      await rename(partial, file)
      await syncFolder(path)
    },
    async removeServing(pid) {
      const file = homeFiles.serving(path)
      const text = await readFile(file, 'utf8').catch(() => '{}')
      const ours = text.includes(`"pid":${pid},`)
      if (ours) await rm(file, { force: true })
    },
  }
}

async function refuseUnsafe(path: string): Promise<void> {
  const found = await stat(path)
  const unsafe = (problem: string, hint: string) => portalError('home_unsafe', { home: path, problem, hint })
  if (!found.isDirectory()) throw unsafe('it is no directory', 'Set PORTAL_HOME to a directory.')
  const user = process.getuid?.()
  // Windows has no such users and modes
  if (user === undefined) return
  if (found.uid !== user) throw unsafe('it belongs to another user', 'Set PORTAL_HOME to a directory of your own.')
  if ((found.mode & 0o022) !== 0)
    throw unsafe('others may write into it', `Look what is in it, then: chmod go-w ${path}`)
  // readable by others is put right: nothing can have been changed through that
  if ((found.mode & 0o055) !== 0) await chmod(path, 0o700)
  const above = await stat(dirname(path))
  // a sticky folder (like /tmp) lets nobody rename what is another's
  if ((above.mode & 0o002) !== 0 && (above.mode & 0o1000) === 0)
    throw unsafe('others may write into the folder that it lies in', 'Set PORTAL_HOME to a directory of your own.')
}

/** Reads the token, or draws one. Two that start at once end up with the same: the file is created once. */
async function tokenOf(file: string): Promise<string> {
  const drawn = randomBytes(32).toString('base64url')
  const partial = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`
  const found = await lstat(file).catch(() => null)
  if (found === null) {
    await writeWhole(partial, `${drawn}\n`)
    try {
      // a link appears whole or not at all, and never over one that is there
      await linkNew(partial, file)
    } finally {
      await rm(partial, { force: true })
    }
  }
  const at = await lstat(file)
  const unsafe = (problem: string) =>
    portalError('home_unsafe', { home: file, problem, hint: `Remove it: a new one is drawn at the next start.` })
  if (!at.isFile()) throw unsafe('it is no plain file')
  if (process.getuid !== undefined && at.uid !== process.getuid()) throw unsafe('it belongs to another user')
  if (process.getuid !== undefined && (at.mode & 0o077) !== 0) throw unsafe('others may read it')
  const token = (await readFile(file, 'utf8')).trim()
  if (!/^[\w-]{43}$/.test(token)) throw unsafe('its content is damaged')
  return token
}

async function linkNew(from: string, to: string): Promise<void> {
  await link(from, to).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await syncFolder(dirname(to))
}

async function writeWhole(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
