import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

/** The kernel's bound on the path of a Unix socket, without the byte that ends it. */
const longestSocketPath = 107

/** In the attempt's folder where its path fits into a socket's address, else in a private folder under the shortest there is. */
export const socketPath = (folder: string): string => {
  const near = join(folder, 's')
  if (Buffer.byteLength(near) <= longestSocketPath) return near
  const uid = process.getuid?.() ?? 0
  const own = join('/tmp', `portal-${uid}-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`)
  mkdirSync(own, { recursive: true, mode: 0o700 })
  const { mode, uid: owner } = lstatSync(own)
  if (owner !== uid || (mode & 0o777) !== 0o700) throw new Error(`${own} belongs to somebody else: remove it`)
  return join(own, 's')
}
