import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, Header } from 'tar'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ArchiveError, fetchWorkdir } from './files.ts'

let folder: string
let work: string
let server: Server
let served: Buffer

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portal-files-'))
  work = join(folder, 'work')
  server = createServer((_, response) => response.writeHead(200, { 'content-length': served.length }).end(served))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

const archiveOf = (files: Readonly<Record<string, Buffer>>): Buffer => {
  const from = join(folder, 'from')
  mkdirSync(join(from, 'inside'), { recursive: true })
  for (const [path, bytes] of Object.entries(files)) writeFileSync(join(from, path), bytes)
  const file = join(folder, 'made.tar')
  create({ cwd: from, file, sync: true }, ['.'])
  return readFileSync(file)
}
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
const fetched = (bytes: Buffer, named = sha256(bytes)): Promise<void> => {
  served = bytes
  const { port } = server.address() as AddressInfo
  return fetchWorkdir({ url: `http://127.0.0.1:${port}`, token: 't' }, named, folder, work)
}

/** One archive that is unpacked from memory, and one that goes by a file. */
describe.each([
  ['small', 1000],
  ['large', 3 * 1024 * 1024],
])('a %s working directory', (_, size) => {
  test('is unpacked as it is, over what an attempt before had begun', async () => {
    const bytes = randomBytes(size)
    mkdirSync(work)
    writeFileSync(join(work, 'left'), 'from before')
    await fetched(archiveOf({ 'inside/a': bytes }))
    expect(readFileSync(join(work, 'inside/a')).equals(bytes)).toBe(true)
    expect(existsSync(join(work, 'left'))).toBe(false)
    expect(existsSync(join(folder, 'workdir.tar'))).toBe(false)
  })

  test('that came damaged is never unpacked, and is tried again', async () => {
    const archive = archiveOf({ a: randomBytes(size) })
    const error = await fetched(archive, sha256(Buffer.from('another'))).catch((why: unknown) => why)
    expect(error).toBeInstanceOf(ArchiveError)
    expect(error).toMatchObject({ final: false, message: expect.stringContaining('came damaged') })
    expect(existsSync(work)).toBe(false)
  })

  test('that reaches outside of itself is refused for good', async () => {
    const bytes = randomBytes(size)
    const header = new Header({ path: '../outside', type: 'File', size, mode: 0o644 })
    header.encode()
    const padding = Buffer.alloc((512 - (size % 512)) % 512)
    const archive = Buffer.concat([header.block as Buffer, bytes, padding, Buffer.alloc(1024)])
    const error = await fetched(archive).catch((why: unknown) => why)
    expect(error).toMatchObject({ final: true, message: expect.stringContaining('cannot be unpacked') })
    expect(existsSync(join(folder, 'outside'))).toBe(false)
  })
})
