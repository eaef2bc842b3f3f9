import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { linkSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const bytes = 32

/**
 * The installation's master key, from which the keys of jobs and the tokens of agents come. Made once, in a private file.
 *
 * @throws when the file is shorter than a key, or others may read it
 */
export function masterKey(home: string): Buffer {
  const path = join(home, 'key')
  const fresh = `${path}.${process.pid}`
  try {
    // whole before it is visible, and never over another: a key that changed would close every checkpoint
    writeFileSync(fresh, randomBytes(bytes), { mode: 0o600, flag: 'wx' })
    linkSync(fresh, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(fresh)
  }
  if ((statSync(path).mode & 0o077) !== 0) throw new Error(`${path} can be read by others: chmod 600 it`)
  const key = readFileSync(path)
  if (key.length !== bytes)
    throw new Error(`${path} is damaged (${key.length} bytes, not ${bytes}): put back the one from your backup`)
  return key
}

const mac = (key: Uint8Array, agentId: string): string =>
  createHmac('sha256', key).update(`agent 1 ${agentId}`).digest('base64url')

/** The token of one agent: who it is, and the proof that this installation said so. Nothing has to be remembered to check it. */
export const agentToken = (key: Uint8Array, agentId: string): string => `${agentId}:${mac(key, agentId)}`

/** Which agent a token is of; null: none of ours. */
export function agentOf(key: Uint8Array, token: string): string | null {
  const at = token.lastIndexOf(':')
  if (at < 1) return null
  const agentId = token.slice(0, at)
  const shown = Buffer.from(token.slice(at + 1))
  const right = Buffer.from(mac(key, agentId))
  return shown.length === right.length && timingSafeEqual(shown, right) ? agentId : null
}
