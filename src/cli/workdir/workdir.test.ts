import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { list } from 'tar'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listWorkdir, WorkdirError } from './list.ts'
import { packWorkdir } from './pack.ts'

let directory: string
beforeEach(() => void (directory = mkdtempSync(join(tmpdir(), 'portal-workdir-'))))
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const put = (path: string, text = 'x') => {
  mkdirSync(join(directory, path, '..'), { recursive: true })
  writeFileSync(join(directory, path), text)
}
const paths = async () => (await listWorkdir(directory)).entries.map(({ path }) => path)
const problem = async (work: Promise<unknown>): Promise<WorkdirError> => {
  const error = await work.then(
    () => null,
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(WorkdirError)
  return error as WorkdirError
}

test('J-RUN-2 the directory is sent along minus .git and what the ignore files leave out', async () => {
  put('.git/config')
  put('.gitignore', 'build/\n*.log\n!keep.log\n')
  put('.portalignore', 'data/\n!wanted.log\n')
  for (const path of ['a.py', 'x.log', 'keep.log', 'wanted.log', 'build/out.o', 'data/big.bin', 'sub/y.log']) put(path)
  expect(await paths()).toEqual(['.gitignore', '.portalignore', 'a.py', 'keep.log', 'sub', 'wanted.log'])
})

test('the innermost ignore file that says anything decides', async () => {
  put('.gitignore', '*.bin\n')
  put('sub/.gitignore', '!*.bin\n')
  put('sub/deep/.portalignore', 'no.bin\n')
  for (const path of ['a.bin', 'sub/a.bin', 'sub/deep/a.bin', 'sub/deep/no.bin']) put(path)
  expect((await paths()).filter((path) => path.endsWith('.bin'))).toEqual(['sub/a.bin', 'sub/deep/a.bin'])
})

test('links that leave the directory, sockets and pipes are left out by name', async () => {
  put('a')
  symlinkSync('a', join(directory, 'inside'))
  symlinkSync('/etc/passwd', join(directory, 'absolute'))
  symlinkSync('../elsewhere', join(directory, 'above'))
  execFileSync('sh', ['-c', 'mkfifo "$0"', join(directory, 'pipe')])
  const server = createServer().listen(join(directory, 'sock'))
  await new Promise((resolve) => server.once('listening', resolve))
  const { entries, leftOut } = await listWorkdir(directory)
  server.close()
  expect(entries.map(({ path }) => path)).toEqual(['a', 'inside'])
  expect(leftOut.map(({ path }) => path)).toEqual(['above', 'absolute', 'pipe', 'sock'])
  expect(leftOut.find(({ path }) => path === 'absolute')?.why).toContain('/etc/passwd')
})

test('hostile names are carried as they are; a name that is not UTF-8 is left out by name', async () => {
  const names = ['@list', '-rf', 'two\nlines', ' space ', 'ünï', 'x'.repeat(200), '..data', "'quote"]
  for (const name of names) put(name)
  writeFileSync(Buffer.concat([Buffer.from(`${directory}/bad`), Buffer.from([0xff])]), '')
  const { entries, leftOut } = await listWorkdir(directory)
  expect(leftOut).toEqual([{ path: 'bad\ufffd', why: 'its name is not UTF-8' }])
  const { bytes } = await packWorkdir(directory, entries)
  expect(await names_in(bytes)).toEqual(entries.map(({ path }) => path))
  expect(new Set(entries.map(({ path }) => path))).toEqual(new Set(names))
})

const names_in = async (bytes: Uint8Array): Promise<readonly string[]> => {
  const found: string[] = []
  const reader = list({ onReadEntry: ({ path }) => void found.push(path.replace(/\/$/, '')) })
  await new Promise<void>((resolve, reject) => {
    reader.on('end', resolve)
    reader.on('error', reject)
    reader.end(Buffer.from(bytes))
  })
  return found
}

test('the same content gives the same bytes, and another content or permission gives others', async () => {
  put('a/b.txt', 'one')
  put('z.sh', 'two')
  chmodSync(join(directory, 'z.sh'), 0o755)
  for (const path of ['a/b.txt', 'a', 'z.sh']) utimesSync(join(directory, path), 1000, 1000)
  const first = await packWorkdir(directory, (await listWorkdir(directory)).entries)
  expect((await packWorkdir(directory, (await listWorkdir(directory)).entries)).sha256).toBe(first.sha256)
  chmodSync(join(directory, 'z.sh'), 0o644)
  const second = await packWorkdir(directory, (await listWorkdir(directory)).entries)
  expect(second.sha256).not.toBe(first.sha256)
})

test('a directory above the limits is refused, its biggest entries named', async () => {
  for (let i = 0; i < 12; i++) put(`many/${i}`)
  put('big.bin')
  truncateSync(join(directory, 'big.bin'), 5000)
  const bySize = await problem(listWorkdir(directory, { limits: { bytes: 4000, files: 100 } }))
  expect(bySize.biggest[0]).toMatchObject({ path: 'big.bin', bytes: 5000 })
  expect(bySize.advice).toContain('.portalignore')
  const byCount = await problem(listWorkdir(directory, { limits: { bytes: 1e9, files: 10 } }))
  expect(byCount.biggest[0]).toMatchObject({ path: 'many/', files: 12 })
})

test('what is no directory says so', async () => {
  expect((await problem(listWorkdir(join(directory, 'none')))).message).toContain('there is no directory')
  put('file')
  expect((await problem(listWorkdir(join(directory, 'file')))).message).toContain('is not a directory')
})

test("Portal's data directory is never sent along, wherever it lies", async () => {
  put('a')
  put('data/portal/token', 'secret')
  const { entries, leftOut } = await listWorkdir(directory, { home: join(directory, 'data/portal') })
  expect(entries.map(({ path }) => path)).toEqual(['a', 'data'])
  expect(leftOut).toEqual([{ path: 'data/portal', why: "Portal's data directory, which holds its keys" }])
})
