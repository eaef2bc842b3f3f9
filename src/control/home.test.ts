import { chmod, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { homeDirectory, homeFiles, reachHome, readServing, readToken } from '../contract/home.ts'
import { openHome } from './home.ts'

let folder: string
let home: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portal-home-'))
  home = join(folder, 'deep', 'home')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const serving = { url: 'http://127.0.0.1:1', pid: 77, version: '1.0.0', startedAt: 5 }

test('PORTAL_HOME, else the data folder of the platform', () => {
  expect(homeDirectory({ PORTAL_HOME: '/x/y/' }, 'linux')).toBe('/x/y')
  expect(homeDirectory({ HOME: '/h', PORTAL_HOME: '' }, 'linux')).toBe('/h/.local/share/portal')
  expect(homeDirectory({ HOME: '/h', XDG_DATA_HOME: '/d' }, 'linux')).toBe('/d/portal')
  expect(homeDirectory({ HOME: '/h', XDG_DATA_HOME: 'relative' }, 'linux')).toBe('/h/.local/share/portal')
  expect(homeDirectory({ HOME: '/h' }, 'darwin')).toBe('/h/Library/Application Support/portal')
})

test('is created private, with a token that others cannot read and that stays', async () => {
  const { token } = await openHome(home)
  expect((await stat(home)).mode & 0o777).toBe(0o700)
  expect((await stat(homeFiles.token(home))).mode & 0o777).toBe(0o600)
  expect(readToken(home)).toBe(token)
  expect((await openHome(home)).token).toBe(token)
})

test('eight that start at once draw one token', async () => {
  const tokens = await Promise.all(Array.from({ length: 8 }, async () => (await openHome(home)).token))
  expect(new Set(tokens).size).toBe(1)
  expect(await readdir(home)).toEqual(['token'])
})

test('one that cannot be made is refused with the reason, also where making folders never comes to an end', async () => {
  const file = join(folder, 'file')
  await writeFile(file, '')
  await expect(openHome(file)).rejects.toThrow('it is no directory')
  await expect(openHome(join(file, 'below', 'it'))).rejects.toThrow('it lies under something that is no directory')
  await expect(openHome(join(folder, 'x'.repeat(300)))).rejects.toThrow('its name is too long')
  await expect(openHome('/proc/portal/home')).rejects.toMatchObject({ code: 'home_unusable', exitCode: 1 })
})

test('one that others may write into is refused; one that they may read is made private', async () => {
  await mkdir(home, { recursive: true })
  await chmod(home, 0o777)
  await expect(openHome(home)).rejects.toMatchObject({ code: 'home_unsafe', exitCode: 1 })
  expect(await readdir(home)).toEqual([])
  await chmod(home, 0o755)
  await openHome(home)
  expect((await stat(home)).mode & 0o777).toBe(0o700)
})

test('one in a folder where others may rename it is refused', async () => {
  await mkdir(join(folder, 'deep'))
  await chmod(join(folder, 'deep'), 0o777)
  await expect(openHome(home)).rejects.toMatchObject({ code: 'home_unsafe' })
})

test('a token that others may read, that is a link, or that is damaged, is refused', async () => {
  await openHome(home)
  const file = homeFiles.token(home)
  await chmod(file, 0o644)
  await expect(openHome(home)).rejects.toThrow('others may read it')
  await rm(file)
  await writeFile(file, 'short\n', { mode: 0o600 })
  await expect(openHome(home)).rejects.toThrow('its content is damaged')
  await rm(file)
  await symlink('/dev/null', file)
  await expect(openHome(home)).rejects.toThrow('it is no plain file')
})

test('who serves is found, and taken back only by whom it names', async () => {
  const opened = await openHome(home)
  expect(readServing(home)).toBeNull()
  expect(() => reachHome(home)).toThrow(`no control plane runs on the data directory ${home}`)
  await opened.writeServing(serving)
  expect(readServing(home)).toEqual(serving)
  expect(reachHome(home)).toEqual({ url: serving.url, token: opened.token })
  await opened.removeServing(7)
  expect(readServing(home)).toEqual(serving)
  await opened.removeServing(77)
  expect(readServing(home)).toBeNull()
  expect(await readdir(home)).toEqual(['token'])
})

test('a damaged serve.json is named', async () => {
  await openHome(home)
  await writeFile(homeFiles.serving(home), '{"url":1}')
  expect(() => readServing(home)).toThrow('serve.json')
})
