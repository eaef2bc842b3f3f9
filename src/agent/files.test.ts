import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { Header } from 'tar'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { listFiles, saveListing, undeclaredChanges, unpack } from './files.ts'

let folder: string
let work: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portal-files-'))
  work = join(folder, 'work')
  mkdirSync(work)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const write = (path: string, text = 'x'): void => {
  mkdirSync(join(work, path, '..'), { recursive: true })
  writeFileSync(join(work, path), text)
}

/** One entry of a tar that no honest program writes. */
const entry = (head: object, body = ''): Buffer => {
  const block = Buffer.alloc(512)
  new Header({ mode: 0o644, size: body.length, mtime: new Date(0), type: 'File', ...head }).encode(block)
  const content = Buffer.alloc(Math.ceil(body.length / 512) * 512)
  content.write(body)
  return Buffer.concat([block, content])
}
const tarOf = (...entries: Buffer[]): Readable => Readable.from([Buffer.concat([...entries, Buffer.alloc(1024)])])

describe('an archive gets nowhere but into its folder', () => {
  test.each([
    ['up', [entry({ path: '../escaped' }, 'evil')]],
    ['by an absolute path', [entry({ path: '/tmp/portal-escaped' }, 'evil')]],
    [
      'through a link',
      [entry({ path: 'way', type: 'SymbolicLink', linkpath: '..' }), entry({ path: 'way/escaped' }, 'evil')],
    ],
    ['by a hard link to what lies outside', [entry({ path: 'hard', type: 'Link', linkpath: '../secret' })]],
  ])('%s', async (_, entries) => {
    writeFileSync(join(folder, 'secret'), 'secret')
    await expect(unpack(tarOf(...entries), work)).rejects.toThrow(/TAR_|path|link/)
    expect(existsSync(join(folder, 'escaped'))).toBe(false)
    expect(existsSync('/tmp/portal-escaped')).toBe(false)
    expect(existsSync(join(work, 'hard'))).toBe(false)
  })

  test('and one that is cut off is no archive', async () => {
    await expect(unpack(Readable.from([entry({ path: 'a' }, 'x'.repeat(600)).subarray(0, 800)]), work)).rejects.toThrow(
      /TAR_|Truncated/,
    )
  })
})

test('links that stay inside come along', async () => {
  const [up, to] = [entry({ path: 'a/up', type: 'SymbolicLink', linkpath: '../empty' }), entry({ path: 'empty' })]
  await unpack(tarOf(up, to), work)
  expect(Object.keys(await listFiles(work)).sort()).toEqual(['a/up', 'empty'])
})

test('an archive of nothing is one', async () => {
  await unpack(tarOf(), work)
  expect(await listFiles(work)).toEqual({})
})

describe('J-FILE-2 what changed and is not declared', () => {
  const changes = async (outputs: readonly string[]): Promise<readonly string[]> =>
    undeclaredChanges(work, join(folder, 'files.json'), outputs)
  const before = async (): Promise<void> => saveListing(join(folder, 'files.json'), await listFiles(work))

  test('is named: new, grown, or touched; what is declared, unchanged or a byproduct is not', async () => {
    for (const path of ['same', 'grown', 'touched', 'out/old']) write(path)
    await before()
    write('grown', 'more')
    utimesSync(join(work, 'touched'), 1, 1)
    for (const path of ['new', 'out/result', '__pycache__/m.pyc']) write(path)
    expect(await changes(['out'])).toEqual(['grown', 'new', 'touched'])
    expect(await changes(['.'])).toEqual([])
  })

  test('at most 20', async () => {
    await before()
    for (let i = 0; i < 30; i++) write(`f${String(i).padStart(2, '0')}`)
    expect(await changes([])).toHaveLength(20)
  })
})
