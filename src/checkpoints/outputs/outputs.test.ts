import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { lstat, mkdtemp, readdir, readFile, readlink, rm, stat, symlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { Header } from 'tar'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readManifest } from '../chain/read.ts'
import { beginSave } from '../chain/save.ts'
import { chainOn, noise, someMeta } from '../chain/testing.ts'
import { memoryStore } from '../memory/index.ts'
import { archiveOf, archiveSoFar } from './archive.ts'
import { lookAtOutputs, staysInside } from './look.ts'
import { packFiles, saveOutputs } from './pack.ts'
import { restoreOutputs, unpackFiles } from './unpack.ts'

let from: string
let to: string
beforeEach(async () => {
  from = await mkdtemp(join(tmpdir(), 'portal-out-'))
  to = await mkdtemp(join(tmpdir(), 'portal-in-'))
})
afterEach(async () => {
  for (const folder of [from, to]) await rm(folder, { recursive: true })
})

const write = (path: string, bytes: string | Buffer = path) => {
  mkdirSync(dirname(join(from, path)), { recursive: true })
  writeFileSync(join(from, path), bytes)
}
const archived = async (outputs: readonly string[]) => {
  const parts: Buffer[] = []
  const { found, refused } = await lookAtOutputs(from, outputs)
  expect(refused).toEqual([])
  expect(await packFiles(from, found, async (bytes) => void parts.push(Buffer.from(bytes)))).toEqual([])
  return Buffer.concat(parts)
}
async function* pieces(bytes: Buffer, length = 7777) {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

describe('J-FILE-2 declared outputs are carried', () => {
  test('through a checkpoint: bytes, modes, times, links, long names', async () => {
    const long = `out/${'n'.repeat(120)}/${'ü'.repeat(60)}.txt`
    write('out/a.txt', 'hello')
    write('out/empty', '')
    write('out/deep/er/model.bin', noise(3_000_001, 'model'))
    write(long, 'long')
    write('log.txt', 'one line')
    write('secret', 'not declared')
    symlinkSync('../log.txt', join(from, 'out/link'))
    execFileSync('chmod', ['750', join(from, 'out/a.txt'), join(from, 'out/deep')])
    utimesSync(join(from, 'out/a.txt'), 1_600_000_000.25, 1_600_000_000.25)
    const chain = chainOn(memoryStore())
    const writer = await beginSave({ ...chain, token: 1, slot: 1, parent: null })
    if (writer.is === 'fenced') throw new Error('fenced')
    expect(await saveOutputs(writer, from, ['out', './log.txt', 'out/deep', 'not-yet'])).toEqual([])
    await writer.commit(someMeta)
    await restoreOutputs(chain, await readManifest(chain, 1), to)
    expect((await readdir(to)).sort()).toEqual(['log.txt', 'out'])
    expect(await readFile(join(to, 'out/a.txt'), 'utf8')).toBe('hello')
    expect(await readFile(join(to, long), 'utf8')).toBe('long')
    expect((await readFile(join(to, 'out/deep/er/model.bin'))).equals(noise(3_000_001, 'model'))).toBe(true)
    expect((await stat(join(to, 'out/empty'))).size).toBe(0)
    expect(await readlink(join(to, 'out/link'))).toBe('../log.txt')
    expect((await stat(join(to, 'out/a.txt'))).mode & 0o777).toBe(0o750)
    expect((await stat(join(to, 'out/deep'))).mode & 0o777).toBe(0o750)
    expect((await stat(join(to, 'out/a.txt'))).mtimeMs).toBe(1_600_000_000_250)
  })

  test('what is there already makes room, and nothing is written through an old link', async () => {
    write('out/a', 'new')
    write('out/b/c', 'new')
    const archive = await archived(['out'])
    mkdirSync(join(to, 'out'))
    mkdirSync(join(to, 'elsewhere'))
    writeFileSync(join(to, 'elsewhere/c'), 'kept')
    writeFileSync(join(to, 'out/a'), 'old and longer')
    await symlink('../elsewhere', join(to, 'out/b'))
    await unpackFiles(to, pieces(archive))
    expect(await readFile(join(to, 'out/a'), 'utf8')).toBe('new')
    expect(await readFile(join(to, 'elsewhere/c'), 'utf8')).toBe('kept')
    expect((await lstat(join(to, 'out/b'))).isDirectory()).toBe(true)
  })

  test('`.` is all that lies in the working directory', async () => {
    write('out/a', 'a')
    write('b', 'b')
    await unpackFiles(to, pieces(await archived(['.'])))
    expect(await readFile(join(to, 'out/a'), 'utf8')).toBe('a')
    expect(await readFile(join(to, 'b'), 'utf8')).toBe('b')
  })

  test('no outputs, or none that are there, make no stream', async () => {
    const chain = chainOn(memoryStore())
    const writer = await beginSave({ ...chain, token: 1, slot: 1, parent: null })
    if (writer.is === 'fenced') throw new Error('fenced')
    expect(await saveOutputs(writer, from, ['nothing'])).toEqual([])
    await writer.commit(someMeta)
    await restoreOutputs(chain, await readManifest(chain, 1), to)
    expect(await readdir(to)).toEqual([])
  })
})

describe('J-FILE-2 declared outputs of a job that has ended are an archive by themselves', () => {
  test('whole; what cannot be carried is left out and named', async () => {
    write('out/big', noise(3_000_001, 'big'))
    write('out/small', 'small')
    symlinkSync('/etc/passwd', join(from, 'out/outside'))
    const { archive, leftOut } = await archiveOf(from, ['out', 'missing'])
    await unpackFiles(to, pieces(await buffer(archive)))
    expect(leftOut.map(({ path }) => path)).toEqual(['out/outside'])
    expect((await readdir(join(to, 'out'))).sort()).toEqual(['big', 'small'])
    expect((await readFile(join(to, 'out/big'))).equals(noise(3_000_001, 'big'))).toBe(true)
  })

  test('of nothing it is the end of an archive', async () => {
    expect((await buffer((await archiveOf(from, ['missing'])).archive)).equals(Buffer.alloc(1024))).toBe(true)
  })

  test('it fails by name when a file changes while it is read', async () => {
    write('out/a', noise(4 << 20, 'a'))
    const { archive } = await archiveOf(from, ['out'])
    const reader = archive.getReader()
    await reader.read()
    appendFileSync(join(from, 'out/a'), 'more')
    const rest = async () => {
      for (let part = await reader.read(); !part.done; part = await reader.read());
    }
    await expect(rest()).rejects.toThrow(/^out\/a changed/)
  })
})

describe('J-FILE-3 an archive of outputs while they grow', () => {
  const soFar = async (before: string | null = null) => {
    const made = await archiveSoFar(from, ['out'], before)
    if (made === null) throw new Error('nothing is new')
    return made
  }

  test('holds each file as far as it was written', async () => {
    write('out/a', noise(4 << 20, 'a'))
    const { archive } = await soFar()
    const reader = archive.getReader()
    const parts = [(await reader.read()).value as Uint8Array]
    appendFileSync(join(from, 'out/a'), 'more')
    for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value)
    await unpackFiles(to, pieces(Buffer.concat(parts)))
    expect((await readFile(join(to, 'out/a'))).equals(noise(4 << 20, 'a'))).toBe(true)
  })

  test('fails when a file becomes shorter', async () => {
    write('out/a', noise(4 << 20, 'a'))
    const { archive } = await soFar()
    write('out/a', 'short')
    await expect(buffer(archive)).rejects.toThrow(/^out\/a /)
  })

  test('is made only where something was written since, and where there is something', async () => {
    expect(await archiveSoFar(from, ['out'], null)).toBe(null)
    write('out/a')
    const { archive, mark } = await soFar()
    await archive.cancel()
    expect(await archiveSoFar(from, ['out'], mark)).toBe(null)
    appendFileSync(join(from, 'out/a'), 'more')
    await (await soFar(mark)).archive.cancel()
  })
})

describe('K-STRICT-3 what cannot be carried is named by path', () => {
  test('sockets, FIFOs, devices, links that leave, paths outside: all together', async () => {
    write('out/a')
    mkdirSync(join(from, 'really'))
    symlinkSync('really', join(from, 'aside'))
    execFileSync('sh', ['-c', 'mkfifo "$1"', 'sh', join(from, 'out/fifo')])
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(join(from, 'out/sock'), resolve))
    symlinkSync('/etc/passwd', join(from, 'out/absolute'))
    symlinkSync('../../x', join(from, 'out/up'))
    symlinkSync('deep/../../../x', join(from, 'out/winding'))
    write('out/two\nlines')
    const { refused } = await lookAtOutputs(from, ['out', '../x', '/etc', 'aside/file'])
    await new Promise((resolve) => server.close(resolve))
    expect(refused.map(({ path, type }) => `${path}: ${type}`)).toEqual([
      'out/absolute: symbolic link',
      'out/fifo: FIFO',
      'out/sock: socket',
      'out/two\nlines: file',
      'out/up: symbolic link',
      'out/winding: symbolic link',
      '../x: path',
      '/etc: path',
      'aside: symbolic link',
    ])
  })

  test('a file that changes, grows, shrinks or is exchanged while outputs are read', async () => {
    for (const change of [
      (path: string) => appendFileSync(path, 'more'),
      (path: string) => writeFileSync(path, 'short'),
      (path: string) => execFileSync('sh', ['-c', 'cp "$1" "$1.new" && mv "$1.new" "$1"', 'sh', path]),
    ]) {
      write('out/a', noise(3 << 20, 'a'))
      write('out/b', 'b')
      const { found } = await lookAtOutputs(from, ['out'])
      let written = 0
      const changed = await packFiles(from, found, async (bytes) => {
        written += bytes.length
        if (written > 1 << 20) change(join(from, 'out/a'))
        if (written > 1 << 20) change(join(from, 'out/b'))
      })
      expect(changed.map(({ path }) => path)).toEqual(['out/a', 'out/b'])
      await rm(join(from, 'out'), { recursive: true })
    }
  })

  test.each([
    ['a', 'b', true],
    ['a/b', '../c', true],
    ['a/b', '..', true],
    ['a', '..', false],
    ['a/b', '../..', false],
    ['a/b', '../../x', false],
    ['a/b', './../c/./d', true],
    ['a/b', 'c/../d', false],
    ['a', '/etc/passwd', false],
    ['a', '', false],
  ])('a link %s -> %s stays inside: %s', (path, target, inside) => {
    expect(staysInside(path, target)).toBe(inside)
  })
})

describe('a forged archive writes nothing outside', () => {
  const entry = (
    path: string,
    type: 'File' | 'SymbolicLink' | 'Link' | 'CharacterDevice' | 'FIFO' | 'Directory',
    more = {},
  ) => {
    const head = Buffer.alloc(512)
    new Header({ path, type, mode: 0o644, size: 0, mtime: new Date(0), ...more }).encode(head)
    return head
  }
  const end = Buffer.alloc(1024)
  test.each<[string, Buffer[]]>([
    ['..', [entry('../escaped', 'File')]],
    ['.. inside', [entry('a/../../escaped', 'File')]],
    ['an absolute path', [entry('/tmp/portal-escaped', 'File')]],
    ['a link that leaves', [entry('a', 'SymbolicLink', { linkpath: '/tmp' })]],
    ['a link up', [entry('a', 'SymbolicLink', { linkpath: '../x' })]],
    ['a hard link', [entry('a', 'Link', { linkpath: '/etc/passwd' })]],
    ['a device', [entry('a', 'CharacterDevice', { devmaj: 1, devmin: 3 })]],
    ['a FIFO', [entry('a', 'FIFO')]],
    ['a file over a directory', [entry('a/', 'Directory'), entry('a', 'File')]],
    ['noise', [noise(2048, 'x')]],
    ['a file that is cut off', [entry('a', 'File', { size: 100_000 }), noise(512, 'x')]],
  ])('%s', async (_, entries) => {
    await expect(unpackFiles(to, pieces(Buffer.concat([...entries, end])))).rejects.toMatchObject({
      name: 'OutputsError',
    })
    expect((await readdir(dirname(to))).filter((name) => name.includes('escaped'))).toEqual([])
  })

  test('a link is made after all files, so that none goes through it', async () => {
    const archive = Buffer.concat([entry('a', 'SymbolicLink', { linkpath: 'b' }), entry('a/x', 'File'), end])
    await expect(unpackFiles(to, pieces(archive))).rejects.toMatchObject({ name: 'OutputsError' })
  })
})
