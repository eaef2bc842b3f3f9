import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar'
import { Readable } from 'node:stream'

/** More files than this are not compared: the list would outgrow the agent. */
const mostFiles = 200_000
const mostUndeclared = 20
/** An archive up to this size is unpacked at once, from memory: a file and a hundred turns of the loop less. */
const inMemoryBytes = 2 * 1024 * 1024

/** Size and time of each file, by its path: what a working directory held before its job began. */
export type Listing = Readonly<Record<string, readonly [size: number, mtimeMs: number]>>

/** Fetches an archive while hashing it, and unpacks it only when it is the one that was meant. Throws in one sentence. */
export const fetchWorkdir = async (
  { url, token }: { readonly url: string; readonly token: string },
  sha256: string,
  folder: string,
  work: string,
): Promise<void> => {
  const archive = join(folder, 'workdir.tar')
  const response = await fetch(`${url.replace(/\/$/, '')}/api/agent/workdirs/${sha256}`, {
    headers: { authorization: `Bearer ${token}` },
  })
  if (!response.ok || !response.body) {
    await response.body?.cancel()
    throw new ArchiveError(
      response.status === 404,
      `the control plane answered ${response.status} for the working directory ${sha256}`,
    )
  }
  if (Number(response.headers.get('content-length') ?? Infinity) <= inMemoryBytes) {
    const bytes = Buffer.from(await response.arrayBuffer())
    mustBe(sha256, createHash('sha256').update(bytes).digest('hex'))
    await makeAnew(work)
    return unpacked(async () => void extract({ ...unpacking(work), sync: true }).end(bytes))
  }
  const hash = createHash('sha256')
  const file = await open(archive, 'w', 0o600)
  try {
    for await (const bytes of response.body) {
      hash.update(bytes)
      await file.write(bytes)
    }
  } finally {
    await file.close()
  }
  mustBe(sha256, hash.digest('hex'))
  await makeAnew(work)
  await unpacked(() => unpack(createReadStream(archive), work))
  await rm(archive, { force: true })
}

const unpacked = async (act: () => Promise<void>): Promise<void> => {
  try {
    await act()
  } catch (error) {
    // the bytes are the right ones: another try gives the same, unless there was no room
    const { code, message } = error as NodeJS.ErrnoException
    throw new ArchiveError(code !== 'ENOSPC', `the working directory cannot be unpacked: ${message}`)
  }
}

const mustBe = (sha256: string, got: string): void => {
  if (got !== sha256) throw new ArchiveError(false, `the working directory came damaged: ${got} instead of ${sha256}`)
}

const makeAnew = async (folder: string): Promise<void> => {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { mode: 0o700 })
}

/** `final`: trying again will not help. */
export class ArchiveError extends Error {
  readonly final: boolean
  constructor(final: boolean, message: string) {
    super(message)
    this.name = 'ArchiveError'
    this.final = final
  }
}

const unpacking = (folder: string) => ({ cwd: folder, strict: true, preserveOwner: false }) as const

/** Unpacks a tar; nothing of it gets outside the folder (absolute paths, `..` and ways through links are refused). */
export const unpack = async (from: Readable, folder: string): Promise<void> => {
  const parts = from[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const first = await parts.next()
  // an archive of nothing begins with its end, which tar takes for no archive at all
  if (first.done || first.value.subarray(0, 512).every((byte) => byte === 0)) return
  const whole = async function* () {
    yield first.value
    for (let part = await parts.next(); !part.done; part = await parts.next()) yield part.value
  }
  await pipeline(
    // not the generator itself: pipeline would wait for a `drain` that tar's stream does not always say
    Readable.from(whole()),
    extract({ cwd: folder, strict: true, preserveOwner: false }) as unknown as NodeJS.WritableStream,
  )
}

/** What is under a folder: paths with `/`, without the folders themselves. Stops at `mostFiles`. */
export const listFiles = async (folder: string): Promise<Listing> => {
  const found: Record<string, readonly [number, number]> = {}
  const look = ['.']
  let count = 0
  for (let next = look.pop(); next !== undefined && count < mostFiles; next = look.pop()) {
    const entries = await readdir(join(folder, next), { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const path = next === '.' ? entry.name : `${next}/${entry.name}`
      if (entry.isDirectory()) {
        look.push(path)
        continue
      }
      const stats = await lstat(join(folder, path)).catch(() => null)
      if (!stats || ++count > mostFiles) continue
      found[path] = [stats.size, Math.floor(stats.mtimeMs)]
    }
  }
  return found
}

export const saveListing = async (path: string, listing: Listing): Promise<void> =>
  writeFile(path, JSON.stringify(listing), { mode: 0o600 })

/** Files that are new or changed and lie in no declared output: named before a machine goes, at most 20. */
export const undeclaredChanges = async (
  work: string,
  listingFile: string,
  outputs: readonly string[],
): Promise<readonly string[]> => {
  const before = await readFile(listingFile, 'utf8').then(
    (text) => JSON.parse(text) as Listing,
    () => ({}) as Listing,
  )
  const declared = outputs.map(normal)
  const isDeclared = (path: string): boolean =>
    declared.some((output) => output === '' || path === output || path.startsWith(`${output}/`))
  const now = await listFiles(work)
  return Object.entries(now)
    .filter(([path, [size, mtime]]) => {
      const was = before[path]
      return !isDeclared(path) && (!was || was[0] !== size || was[1] !== mtime) && !isByproduct(path)
    })
    .map(([path]) => path)
    .sort()
    .slice(0, mostUndeclared)
}

/** What an interpreter leaves beside what it runs is nobody's result. */
const isByproduct = (path: string): boolean => /(^|\/)__pycache__\//.test(path)

const normal = (path: string): string =>
  path
    .replace(/^(\.\/)+/, '')
    .replace(/\/+$/, '')
    .replace(/^\.$/, '')
