import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { messageOf, StoreError } from '../errors.ts'

/** On these, locks and shared memory of another machine's processes are not seen: SQLite would be damaged in silence. */
const networkFileSystems = new Set([
  'nfs',
  'nfs4',
  'cifs',
  'smb2',
  'smb3',
  'smbfs',
  'afs',
  'ceph',
  'lustre',
  'gfs2',
  'ocfs2',
  'glusterfs',
  'beegfs',
  'gpfs',
  'davfs',
  'fuse.sshfs',
  'fuse.s3fs',
  'fuse.rclone',
  'fuse.glusterfs',
  'fuse.ceph',
  'fuse.ceph-fuse',
  'fuse.davfs2',
  'fuse.gcsfuse',
  'fuse.goofys',
  'fuse.mount-s3',
  'fuse.juicefs',
  'fuse.blobfuse2',
])

/**
 * The network file system that a path lies on, by name; null: none.
 *
 * @param path absolute, without symbolic links
 * @param mountInfo what `/proc/self/mountinfo` holds
 */
export function networkFileSystemOf(path: string, mountInfo: string): string | null {
  let best: { readonly at: string; readonly type: string; readonly options: string } | null = null
  for (const line of mountInfo.split('\n')) {
    const [before, after] = line.split(' - ')
    const at = before
      ?.split(' ')[4]
      ?.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)))
    const [type, , options] = after?.split(' ') ?? []
    if (at === undefined || type === undefined) continue
    const inside = path === at || path.startsWith(at.endsWith('/') ? at : `${at}/`)
    // of two mounts on one place the later one is seen
    if (inside && at.length >= (best?.at.length ?? 0)) best = { at, type, options: options ?? '' }
  }
  if (best === null) return null
  if (networkFileSystems.has(best.type)) return best.type
  // 9p also serves sandboxes and virtual machines on one host, where it is safe
  const remote9p = best.type === '9p' && /\b(trans=tcp|aname=drvfs)\b/.test(best.options)
  return remote9p ? '9p' : null
}

/**
 * Makes the file and its folder where they are absent, readable by their owner alone; SQLite gives its side files the same mode.
 *
 * @returns the file's absolute path
 * @throws StoreError `store_network_file_system`, `store_failed`
 */
export function preparePrivateFile(where: string): string {
  const file = resolve(where)
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const folder = realpathSync(dirname(file))
    const type = networkFileSystemOf(folder, mountInfo())
    if (type !== null)
      throw new StoreError(
        'store_network_file_system',
        `${file} lies on a network file system (${type}), on which SQLite cannot keep what is written safe. ` +
          'Put the data directory on a local disk (PORTAL_HOME), or use PostgreSQL: postgresql://…',
      )
    create(file)
    chmodSync(file, 0o600)
    return file
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StoreError(
      'store_failed',
      `${file} cannot be opened for writing: ${messageOf(error)}. Check the folder's owner and mode, or choose another.`,
      error,
    )
  }
}

/**
 * A file that is there is not opened: a descriptor closed again would take with it every lock that SQLite holds on that file
 * in this process, and another process could then delete the log from under it.
 */
function create(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

/** Only Linux tells; elsewhere a network file system goes unseen. */
const mountInfo = (): string => {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}
