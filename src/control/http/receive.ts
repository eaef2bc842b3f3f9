/** Bodies as they arrive: JSON into memory within a bound, bytes onto the disk, whole or not at all. */
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { PortalError, portalError } from '../../contract/errors.ts'

/** Nothing came for this long: whoever sends is gone. */
const idleMs = 60_000

/** Reads a JSON body. Throws `unsupported_type`, `body_too_large`, `invalid_json`, `upload_incomplete`. */
export async function receiveJson(incoming: IncomingMessage, limitBytes: number): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of bounded(incoming, limitBytes)) chunks.push(chunk)
  if (chunks.length === 0) return {}
  const type = (incoming.headers['content-type'] ?? 'nothing').split(';')[0]?.trim().toLowerCase() ?? ''
  // a page's form cannot send this type without being asked first, which is never answered
  if (type !== 'application/json') throw portalError('unsupported_type', { expected: 'application/json', got: type })
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
    return JSON.parse(text, text.includes('__proto__') ? refuseProto : undefined) as unknown
  } catch (error) {
    if (error instanceof PortalError) throw error
    throw portalError('invalid_json', { problem: (error as Error).message })
  }
}

/** Checks leave this key out without a word: a variable of that name would be lost. */
const refuseProto = (key: string, value: unknown): unknown => {
  if (key !== '__proto__') return value
  const [place, problem] = [key, 'a key of this name is not taken']
  throw portalError('invalid_request', { place, problem, problems: [{ place, problem }] })
}

export interface Received {
  readonly sha256: string
  readonly bytes: number
}

export interface Upload {
  readonly folder: string
  /** the file's name once it is whole */
  readonly name: string
  readonly limitBytes: number
  /** what it must hash to; null: whatever comes */
  readonly sha256: string | null
  /** asked once it is whole, before it appears: throws when it is not wanted any more */
  readonly still?: () => Promise<void>
}

/**
 * Streams a body into a file that appears under its name only when it is whole, verified and durable.
 * Throws `body_too_large`, `hash_mismatch`, `upload_incomplete`, `disk_full`; nothing is left behind then.
 */
export async function receiveFile(incoming: IncomingMessage, upload: Upload): Promise<Received> {
  await mkdir(upload.folder, { recursive: true, mode: 0o700 })
  const partial = join(upload.folder, `${partialPrefix}${randomUUID()}`)
  const hash = createHash('sha256')
  let bytes = 0
  const file = await open(partial, 'wx', 0o600)
  try {
    try {
      for await (const chunk of bounded(incoming, upload.limitBytes)) {
        hash.update(chunk)
        await file.writeFile(chunk)
        bytes += chunk.length
      }
      await file.datasync()
    } finally {
      await file.close()
    }
    const sha256 = hash.digest('hex')
    if (upload.sha256 !== null && sha256 !== upload.sha256)
      throw portalError('hash_mismatch', { expected: upload.sha256, got: sha256 })
    await upload.still?.()
    await rename(partial, join(upload.folder, upload.name))
    await syncFolder(upload.folder)
    return { sha256, bytes }
  } catch (error) {
    await rm(partial, { force: true })
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOSPC' || code === 'EDQUOT') throw portalError('disk_full', { path: upload.folder })
    throw error
  }
}

/** Keeps what comes in pieces under a name, once it is whole and durable; nothing is left behind where it fails. */
export async function keepFile(pieces: AsyncIterable<Uint8Array>, folder: string, name: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const partial = join(folder, `${partialPrefix}${randomUUID()}`)
  const file = await open(partial, 'wx', 0o600)
  try {
    try {
      for await (const bytes of pieces) await file.writeFile(bytes)
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(partial, join(folder, name))
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
}

const partialPrefix = '.incoming-'

/** Removes what uploads left behind that a crash cut off. Called before any upload begins. */
export async function removePartial(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  for (const name of names.filter((name) => name.startsWith(partialPrefix)))
    await rm(join(folder, name), { force: true })
}

async function* bounded(incoming: IncomingMessage, limitBytes: number): AsyncGenerator<Buffer> {
  const declared = Number(incoming.headers['content-length'] ?? 0)
  if (declared > limitBytes) throw portalError('body_too_large', { limitBytes })
  let bytes = 0
  let timer = setTimeout(() => {}, 0)
  const watch = () => {
    clearTimeout(timer)
    timer = setTimeout(() => incoming.destroy(), idleMs)
  }
  try {
    watch()
    // left open when this stops early: the answer goes out over the same socket
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      watch()
      bytes += (chunk as Buffer).length
      if (bytes > limitBytes) throw portalError('body_too_large', { limitBytes })
      yield chunk as Buffer
    }
    if (!incoming.complete) throw portalError('upload_incomplete', { receivedBytes: bytes })
  } catch (error) {
    if (error instanceof PortalError) throw error
    throw portalError('upload_incomplete', { receivedBytes: bytes })
  } finally {
    clearTimeout(timer)
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
