import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { Header } from 'tar'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  listFiles,
  packOutputs,
  presentOutputs,
  refusedOutputs,
  saveListing,
  undeclaredChanges,
  unpack,
} from './files.ts'

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

test('J-FILE-2 outputs come back as they were, the empty and the nested', async () => {
  write('out/a/b.txt', 'deep')
  write('out/empty', '')
  write('model.bin', '\0\x01')
  symlinkSync('../empty', join(work, 'out', 'a', 'link'))
  write('scratch')
  const present = await presentOutputs(work, ['out/', './model.bin', 'missing'])
  expect(present).toEqual(['out', 'model.bin'])
  const back = join(folder, 'back')
  mkdirSync(back)
  await unpack(packOutputs(work, present), back)
  expect(Object.keys(await listFiles(back)).sort()).toEqual(['model.bin', 'out/a/b.txt', 'out/a/link', 'out/empty'])
  expect(readFileSync(join(back, 'out/a/b.txt'), 'utf8')).toBe('deep')
})

test('an archive of nothing is one', async () => {
  await unpack(packOutputs(work, []), work)
  expect(await listFiles(work)).toEqual({})
})

test('K-STRICT-3 what of the outputs belongs to this machine is named by its path', async () => {
  write('out/good')
  symlinkSync('/etc/passwd', join(work, 'out', 'outside'))
  symlinkSync('good', join(work, 'out', 'inside'))
  spawnSync('mkfifo', [join(work, 'out', 'pipe')])
  const refused = await refusedOutputs(work, ['out'])
  expect(refused.map(({ path, type }) => `${path}: ${type}`).sort()).toEqual([
    'output:out/outside: symbolic link',
    'output:out/pipe: named pipe',
  ])
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
