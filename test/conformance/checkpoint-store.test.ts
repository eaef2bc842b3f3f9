import { execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { directoryStore } from '../../src/checkpoints/directory/index.ts'
import { memoryStore } from '../../src/checkpoints/memory/index.ts'
import type { CheckpointStore } from '../../src/checkpoints/port.ts'

const bytes = (text: string) => Buffer.from(text)
const text = (bytes: Uint8Array | null) => bytes && Buffer.from(bytes).toString()
const fault = (name: string) => expect.objectContaining({ name: 'StoreError', fault: name })

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portal-store-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const stores: Record<string, (name: string) => Promise<CheckpointStore>> = {
  directory: (name) => directoryStore(join(folder, name)),
  memory: async () => memoryStore(),
}

describe.each(Object.entries(stores))('%s', (_, open) => {
  test('K-STORE-1 an object is read back whole and by range', async () => {
    const store = await open('objects')
    await store.put('job/000001/a/index', bytes('0123456789'))
    expect(text(await store.read('job/000001/a/index'))).toBe('0123456789')
    expect(text(await store.read('job/000001/a/index', { offset: 3, length: 4 }))).toBe('3456')
    expect(text(await store.read('job/000001/a/index', { offset: 8, length: 4 }))).toBe('89')
    expect(await store.read('job/000001/a/other')).toBeNull()
    expect(await store.read('job/000001/a/other', { offset: 0, length: 1 })).toBeNull()
    expect(await store.read('job/000001/a/index/deeper')).toBeNull()
  })

  test('a put that comes again with the same bytes is nothing; with others it is refused', async () => {
    const store = await open('twice')
    await store.put('job/a', bytes('one'))
    await store.put('job/a', bytes('one'))
    await expect(store.put('job/a', bytes('two'))).rejects.toEqual(fault('exists'))
    expect(text(await store.read('job/a'))).toBe('one')
  })

  test('a streamed object is not there before it is closed, and never after it was given up', async () => {
    const store = await open('streams')
    const writer = await store.create('job/pack')
    await writer.write(bytes('abc'))
    expect(await store.read('job/pack')).toBeNull()
    expect(await store.list('job/')).toEqual([])
    await writer.write(bytes('def'))
    await writer.close()
    expect(text(await store.read('job/pack'))).toBe('abcdef')
    const given = await store.create('job/given-up')
    await given.write(bytes('abc'))
    await given.abort()
    await given.abort()
    expect(await store.read('job/given-up')).toBeNull()
    await expect(given.write(bytes('more'))).rejects.toEqual(fault('io'))
  })

  test('a streamed object never replaces another', async () => {
    const store = await open('replace')
    await store.put('job/pack', bytes('first'))
    const writer = await store.create('job/pack')
    await writer.write(bytes('second'))
    await expect(writer.close()).rejects.toEqual(fault('exists'))
    expect(text(await store.read('job/pack'))).toBe('first')
  })

  test('K-WHOLE-1 16 writers of one slot have one winner', async () => {
    const store = await open('race')
    for (let slot = 1; slot <= 5; slot++) {
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, i) => store.createSlot('job', slot, bytes(`writer ${i}`))),
      )
      expect(answers.filter((answer) => answer === 'won')).toHaveLength(1)
      expect(answers.filter((answer) => answer === 'taken')).toHaveLength(15)
      expect(text(await store.readSlot('job', slot))).toBe(`writer ${answers.indexOf('won')}`)
    }
  })

  test('16 writers of the same bytes: one won, the others are told that it is theirs', async () => {
    const store = await open('same')
    const answers = await Promise.all(Array.from({ length: 16 }, () => store.createSlot('job', 1, bytes('same'))))
    expect(answers.filter((answer) => answer === 'won')).toHaveLength(1)
    expect(answers.filter((answer) => answer === 'mine')).toHaveLength(15)
  })

  test('slots of a job are listed rising, and stay taken while they are replaced', async () => {
    const store = await open('slots')
    expect(await store.slots('job')).toEqual([])
    for (const slot of [2, 1, 11]) await store.createSlot('job', slot, bytes(`${slot}`))
    await store.createSlot('job2', 5, bytes('other'))
    expect(await store.slots('job')).toEqual([1, 2, 11])
    await store.replaceSlot('job', 2, bytes('dropped'))
    expect(await store.createSlot('job', 2, bytes('late'))).toBe('taken')
    expect(text(await store.readSlot('job', 2))).toBe('dropped')
    await expect(store.replaceSlot('job', 3, bytes('x'))).rejects.toEqual(fault('io'))
    expect(await store.readSlot('job', 3)).toBeNull()
    await store.removeSlot('job', 2)
    await store.removeSlot('job', 2)
    expect(await store.slots('job')).toEqual([1, 11])
  })

  test('keys are listed by folder, and what is not there is removed without a word', async () => {
    const store = await open('list')
    for (const key of ['job/000001/a/pack', 'job/000001/a/index', 'job/000010/b/pack', 'job1/000001/a/pack'])
      await store.put(key, bytes(key))
    expect(await store.list('job/')).toEqual(['job/000001/a/index', 'job/000001/a/pack', 'job/000010/b/pack'])
    expect(await store.list('job/000001/')).toEqual(['job/000001/a/index', 'job/000001/a/pack'])
    expect(await store.list('none/')).toEqual([])
    await store.remove('job/000001/a/pack')
    await store.remove('job/000001/a/pack')
    await store.remove('job/000001/a/index')
    expect(await store.list('job/')).toEqual(['job/000010/b/pack'])
    await store.put('job/000001/a/pack', bytes('again'))
  })

  test.each([
    '../etc/passwd',
    'job/../../x',
    '/etc/passwd',
    'job',
    'job//x',
    'job/.',
    'job/a\0b',
    'job/.hidden',
    'a/b/c/d/e/f/g',
    `job/${'x'.repeat(129)}`,
    'job/a\\b',
    '',
  ])('the key %j leaves no folder', async (key) => {
    const store = await open('keys')
    await expect(store.put(key, bytes('x'))).rejects.toEqual(fault('bad-key'))
    await expect(store.create(key)).rejects.toEqual(fault('bad-key'))
    await expect(store.read(key)).rejects.toEqual(fault('bad-key'))
    await expect(store.remove(key)).rejects.toEqual(fault('bad-key'))
  })

  test.each(['..', '.', 'a/b', '', '.x', 'x'.repeat(200)])('the job id %j leaves no folder', async (job) => {
    const store = await open('jobs')
    await expect(store.createSlot(job, 1, bytes('x'))).rejects.toEqual(fault('bad-key'))
    await expect(store.slots(job)).rejects.toEqual(fault('bad-key'))
    await expect(store.list(`${job}/../`)).rejects.toEqual(fault('bad-key'))
  })

  test.each([0, -1, 1.5, Number.NaN, 1_000_000])('%d is no slot', async (slot) => {
    const store = await open('numbers')
    await expect(store.createSlot('job', slot, bytes('x'))).rejects.toEqual(fault('bad-key'))
    await expect(store.readSlot('job', slot)).rejects.toEqual(fault('bad-key'))
  })
})

describe('directory alone', () => {
  test('files are private', async () => {
    const root = join(folder, 'modes')
    const store = await directoryStore(root)
    await store.put('job/000001/a/pack', bytes('x'))
    await store.createSlot('job', 1, bytes('x'))
    for (const path of ['', 'slots', 'slots/job', 'objects/job/000001/a', 'tmp'])
      expect((await stat(join(root, path))).mode & 0o777).toBe(0o700)
    for (const path of ['slots/job/000001', 'objects/job/000001/a/pack'])
      expect((await stat(join(root, path))).mode & 0o777).toBe(0o600)
    expect(await readdir(join(root, 'tmp'))).toEqual([])
  })

  test('a local disk is told from a network file system', async () => {
    expect((await directoryStore(join(folder, 'local'))).network).toBeNull()
  })

  test('a link put in an object’s place is not followed', async () => {
    const root = join(folder, 'links')
    const store = await directoryStore(root)
    await writeFile(join(folder, 'secret'), 'secret')
    await mkdir(join(root, 'objects/job'), { recursive: true })
    await symlink(join(folder, 'secret'), join(root, 'objects/job/pack'))
    await expect(store.read('job/pack')).rejects.toEqual(fault('io'))
    await expect(store.put('job/pack', bytes('x'))).rejects.toMatchObject({ name: 'StoreError' })
  })

  test('K-WHOLE-1 a writer killed at any moment leaves an object whole or not at all', async () => {
    const root = join(folder, 'killed')
    const store = await directoryStore(root)
    const program = `
      import { directoryStore } from ${JSON.stringify(new URL('../../src/checkpoints/directory/index.ts', import.meta.url).href)}
      const store = await directoryStore(${JSON.stringify(root)})
      const part = Buffer.alloc(1 << 20, 7)
      console.log('ready')
      for (let i = 0; ; i++) {
        const writer = await store.create('job/pack-' + i)
        for (let k = 0; k < 4; k++) await writer.write(part)
        await writer.close()
        await store.createSlot('job', i + 1, part)
        await store.put('job/index-' + i, part)
      }`
    for (let round = 0; round < 4; round++) {
      await rm(join(root, 'objects/job'), { recursive: true, force: true })
      await rm(join(root, 'slots/job'), { recursive: true, force: true })
      const child = spawn(
        process.execPath,
        ['--input-type=module', '--disable-warning=ExperimentalWarning', '-e', program],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      )
      await new Promise<void>((resolve) => child.stdout.once('data', () => resolve()))
      await new Promise((resolve) => setTimeout(resolve, 40 + round * 37))
      const ended = new Promise((resolve) => child.once('close', resolve))
      child.kill('SIGKILL')
      await ended
      for (const key of await store.list('job/'))
        expect((await store.read(key))?.length).toBe(key.includes('pack') ? 4 << 20 : 1 << 20)
      for (const slot of await store.slots('job')) expect((await store.readSlot('job', slot))?.length).toBe(1 << 20)
    }
  })

  test('K-STORE-2 a full disk is an error by name, and nothing is half visible', async (context) => {
    const root = join(folder, 'full')
    await mkdir(root)
    const run = promisify(execFile)
    try {
      await run('mount', ['-t', 'tmpfs', '-o', 'size=2m,mode=700', 'portal-test', root])
    } catch (error) {
      context.skip(`needs the right to mount a small file system: ${String(error)}`)
    }
    try {
      const store = await directoryStore(join(root, 'store'))
      await store.createSlot('job', 1, bytes('small'))
      const writer = await store.create('job/pack')
      const part = Buffer.alloc(256 << 10, 1)
      const filling = async () => {
        for (let i = 0; i < 16; i++) await writer.write(part)
        await writer.close()
      }
      await expect(filling()).rejects.toEqual(fault('full'))
      await expect(store.put('job/index', Buffer.alloc(4 << 20, 1))).rejects.toEqual(fault('full'))
      await expect(store.createSlot('job', 2, Buffer.alloc(4 << 20, 1))).rejects.toEqual(fault('full'))
      expect(await store.list('job/')).toEqual([])
      expect(await store.slots('job')).toEqual([1])
      expect(await readdir(join(root, 'store/tmp'))).toEqual([])
      await store.put('job/index', Buffer.alloc(1 << 20, 1))
    } finally {
      await run('umount', [root])
    }
  })
})
