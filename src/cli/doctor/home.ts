import { link, lstat, mkdtemp, open, readFile, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { fail, ok, type Finding } from './check.ts'

/** File systems on which locks and durable writes are not what they promise: NFS, SMB, CIFS, FUSE, AFS, 9p. */
const networked: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x5346414f, 'AFS'],
  [0x01021997, '9p'],
])

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0')

/** The data directory: there, one's own, closed to others, on a disk of this machine. */
export const home = async (path: string): Promise<Finding> => {
  const found = await stat(path).catch(() => null)
  if (found === null) return ok('home', `${path} is made when a control plane first starts`)
  if (!found.isDirectory())
    return fail('home', `${path} is not a directory`, 'move it away, or set PORTAL_HOME to another path')
  const uid = process.getuid?.()
  if (uid !== undefined && found.uid !== uid)
    return fail(
      'home',
      `${path} belongs to user ${found.uid}, not to you (${uid})`,
      'set PORTAL_HOME to a folder of your own',
    )
  if ((found.mode & 0o077) !== 0)
    return fail('home', `${path} is open to others (${octal(found.mode)})`, `chmod 700 ${path}`)
  const kind = networked.get((await statfs(path)).type)
  if (kind) return fail('home', `${path} is on ${kind}`, 'set PORTAL_HOME to a folder on a disk of this machine')
  return ok('home', path)
}

/** The token with which people's programs come in: one's own eyes only. */
export const token = async (path: string): Promise<Finding> => {
  const stat = await lstat(path).catch(() => null)
  if (stat === null) return ok('token', 'it is made when a control plane first starts')
  if (!stat.isFile())
    return fail('token', `${path} is not a plain file`, `remove it; the control plane makes a new one`)
  if ((stat.mode & 0o077) !== 0)
    return fail(
      'token',
      `${path} may be read by others (${octal(stat.mode)})`,
      `chmod 600 ${path}, and remove it if somebody may have seen it`,
    )
  const text = await readFile(path, 'utf8').catch(() => null)
  if (text === null) return fail('token', `${path} cannot be read`, `chmod 600 ${path}`)
  return text.trim().length < 16
    ? fail('token', `${path} is damaged`, 'remove it and start the control plane anew')
    : ok('token', 'private')
}

/** Checkpoints are published by a hard link, which must fail where there is one already: two winners would fork a chain. */
export const checkpointDirectory = async (path: string): Promise<Finding> => {
  let tried: string | null = null
  try {
    tried = await mkdtemp(join(path, '.doctor-'))
    const [first, second, slot] = ['first', 'second', 'slot'].map((name) => join(`${tried}`, name)) as [
      string,
      string,
      string,
    ]
    for (const file of [first, second]) {
      const handle = await open(file, 'wx', 0o600)
      await handle.writeFile(file)
      await handle.sync()
      await handle.close()
    }
    await link(first, slot)
    const again = await link(second, slot).then(
      () => 'a second link of the same name was taken',
      (error: NodeJS.ErrnoException) => (error.code === 'EEXIST' ? null : `it answered ${error.code}`),
    )
    if (again !== null || (await readFile(slot, 'utf8')) !== first)
      return fail(
        'checkpoints',
        `${path} does not make hard links once: ${again ?? 'it lost one'}`,
        'put PORTAL_HOME on a disk of this machine (ext4, xfs, btrfs, apfs)',
      )
    return ok('checkpoints', `${path} makes hard links once`)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const says = `${path} cannot keep checkpoints (${code ?? String(error)})`
    return fail(
      'checkpoints',
      says,
      code === 'ENOSPC' ? 'make room on its disk' : 'put PORTAL_HOME on a disk of this machine',
    )
  } finally {
    if (tried !== null) await rm(tried, { recursive: true, force: true })
  }
}
