import ignore, { type Ignore } from 'ignore'
// asked without promises: loading those takes longer than looking at a small directory, and each file three times as long
import { lstatSync, readdirSync, readFileSync, readlinkSync, type Dirent, type Stats } from 'node:fs'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'

export interface Entry {
  /** inside the directory, `/` between its parts */
  readonly path: string
  readonly kind: 'file' | 'directory' | 'link'
  readonly bytes: number
  readonly mode: number
  readonly mtimeMs: number
  /** changes with every change of the file, also where its time of change was set back */
  readonly ctimeMs: number
  readonly inode: number
}

export interface Listing {
  /** sorted by the bytes of their paths, directories before what is in them */
  readonly entries: readonly Entry[]
  readonly bytes: number
  readonly files: number
  /** left out, each with why; never silently */
  readonly leftOut: readonly { readonly path: string; readonly why: string }[]
}

export interface Limits {
  readonly bytes: number
  readonly files: number
}

export const workdirLimits: Limits = { bytes: 256 * 1024 * 1024, files: 20_000 }
/** What is left out is listed up to here; a directory that goes over its limits is walked this far to name its biggest parts. */
const walkAtMost = 400_000
/** After so many files Ctrl-C gets its turn. */
const turnAfter = 1000
const ignoreFiles = ['.gitignore', '.portalignore'] as const

/** A working directory that cannot be sent along; `biggest` are its largest entries, where it is too large. */
export class WorkdirError extends Error {
  readonly advice: string
  readonly biggest: readonly { readonly path: string; readonly bytes: number; readonly files: number }[]
  constructor(message: string, advice: string, biggest: WorkdirError['biggest'] = []) {
    super(message)
    this.name = 'WorkdirError'
    this.advice = advice
    this.biggest = biggest
  }
}

interface Rules {
  /** path of the directory that the rules stand in, `''` for the top */
  readonly at: string
  readonly rules: Ignore
}

/**
 * Lists what of a directory is sent along with a job: everything but `.git` and what `.gitignore` and `.portalignore`
 * leave out (the second has the last word, so that it can bring something back with `!`), at every level, as git reads them.
 *
 * @param home the data directory, which is never sent along, should it lie there
 * @throws WorkdirError when it is not a directory, cannot be read, or is larger than `limits`
 */
export const listWorkdir = async (
  directory: string,
  { limits = workdirLimits, home = null }: { readonly limits?: Limits; readonly home?: string | null } = {},
): Promise<Listing> => {
  const entries: Entry[] = []
  const leftOut: { path: string; why: string }[] = []
  let bytes = 0
  let files = 0
  let walked = 0

  const visit = async (at: string, inherited: readonly Rules[]): Promise<void> => {
    const found = read(directory, at)
    const rules = rulesIn(directory, at, found, inherited)
    for (const item of found) {
      if (item.name === '.git') continue
      const path = at === '' ? item.name : `${at}/${item.name}`
      if (isIgnored(path, item.isDirectory(), rules)) continue
      if (++walked > walkAtMost) return
      if (walked % turnAfter === 0) await new Promise((resolve) => setImmediate(resolve))
      const full = join(directory, path)
      if (full === home) {
        leftOut.push({ path, why: "Portal's data directory, which holds its keys" })
        continue
      }
      const badName = nameProblem(directory, at, item)
      if (badName !== null) {
        leftOut.push({ path, why: badName })
        continue
      }
      if (item.isSymbolicLink()) {
        const target = readlinkSync(full)
        if (leaves(directory, full, target)) {
          leftOut.push({ path, why: `a link that leaves the directory (to ${target})` })
          continue
        }
      } else if (!item.isDirectory() && !item.isFile()) {
        leftOut.push({ path, why: `a ${kindOf(item)}` })
        continue
      }
      const stat = statOf(full)
      if (stat === null) continue // gone since it was listed
      const kind = stat.isDirectory() ? 'directory' : stat.isSymbolicLink() ? 'link' : 'file'
      const { mode, mtimeMs, ctimeMs, ino: inode } = stat
      entries.push({ path, kind, bytes: kind === 'file' ? stat.size : 0, mode, mtimeMs, ctimeMs, inode })
      if (kind === 'directory') await visit(path, rules)
      else {
        files++
        bytes += kind === 'file' ? stat.size : 0
      }
    }
  }
  await visit('', [])

  if (bytes > limits.bytes || files > limits.files) throw tooLarge(directory, entries, { bytes, files }, limits)
  return { entries, bytes, files, leftOut }
}

const read = (directory: string, at: string): readonly Dirent[] => {
  try {
    const found = readdirSync(join(directory, at), { withFileTypes: true })
    return found.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const what = at === '' ? directory : join(directory, at)
    if (code === 'ENOENT') throw new WorkdirError(`there is no directory ${what}`, 'name another with --workdir')
    if (code === 'ENOTDIR') throw new WorkdirError(`${what} is not a directory`, 'name its folder with --workdir')
    throw new WorkdirError(
      `${what} cannot be read (${code ?? String(error)})`,
      'make it readable, or leave it out with a line in .portalignore',
    )
  }
}

const rulesIn = (
  directory: string,
  at: string,
  found: readonly Dirent[],
  inherited: readonly Rules[],
): readonly Rules[] => {
  const names = ignoreFiles.filter((name) => found.some((item) => item.name === name && item.isFile()))
  if (names.length === 0) return inherited
  const rules = ignore({ allowRelativePaths: true })
  for (const name of names) rules.add(readFileSync(join(directory, at, name), 'utf8'))
  return [...inherited, { at, rules }]
}

/** The innermost file that says anything about a path decides, as in git. */
const isIgnored = (path: string, isDirectory: boolean, rules: readonly Rules[]): boolean => {
  for (let i = rules.length - 1; i >= 0; i--) {
    const { at, rules: here } = rules[i] as Rules
    const inside = at === '' ? path : path.slice(at.length + 1)
    const { ignored, unignored } = here.test(isDirectory ? `${inside}/` : inside)
    if (ignored) return true
    if (unignored) return false
  }
  return false
}

/** A name that is not UTF-8 comes back changed by the file system calls, and would name another file at the other end. */
const nameProblem = (directory: string, at: string, item: Dirent): string | null => {
  if (!item.name.includes('\ufffd')) return null
  const raw = readdirSync(join(directory, at), { encoding: 'buffer' })
  return raw.some((name) => name.equals(Buffer.from(item.name))) ? null : 'its name is not UTF-8'
}

const statOf = (path: string): Stats | null => {
  try {
    return lstatSync(path)
  } catch {
    return null
  }
}

const leaves = (directory: string, link: string, target: string): boolean => {
  if (isAbsolute(target)) return true
  const inside = relative(resolve(directory), resolve(link, '..', target))
  return inside === '..' || inside.startsWith(`..${sep}`)
}

const kindOf = (item: Dirent): string =>
  item.isSocket()
    ? 'socket'
    : item.isFIFO()
      ? 'pipe'
      : item.isBlockDevice() || item.isCharacterDevice()
        ? 'device'
        : 'special file'

const tooLarge = (
  directory: string,
  entries: readonly Entry[],
  { bytes, files }: Limits,
  limits: Limits,
): WorkdirError => {
  const tops = new Map<string, { path: string; bytes: number; files: number }>()
  for (const { path, kind, bytes: size } of entries) {
    if (kind === 'directory') continue
    const cut = path.indexOf('/')
    const name = cut < 0 ? path : `${path.slice(0, cut)}/`
    const top = tops.get(name) ?? { path: name, bytes: 0, files: 0 }
    top.bytes += size
    top.files += 1
    tops.set(name, top)
  }
  const share = (top: { bytes: number; files: number }) => Math.max(top.bytes / limits.bytes, top.files / limits.files)
  const biggest = [...tops.values()].sort((a, b) => share(b) - share(a)).slice(0, 5)
  const over =
    bytes > limits.bytes
      ? `${(bytes / 1024 ** 2).toFixed(0)} MiB, more than ${(limits.bytes / 1024 ** 2).toFixed(0)} MiB`
      : `${files} files, more than ${limits.files}`
  return new WorkdirError(
    `the working directory ${directory} is too large to be sent along: ${over}`,
    'leave out what the job does not need by lines in .portalignore, or send a smaller folder with --workdir DIR',
    biggest,
  )
}
