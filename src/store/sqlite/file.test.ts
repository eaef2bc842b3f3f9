import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../index.ts'
import { newest } from '../migrations.ts'
import { networkFileSystemOf } from './file.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portal-store-'))
  file = join(folder, 'data', 'portal.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const modeOf = (path: string) => statSync(path).mode & 0o777
const changed = async (sql: string) => {
  await (await openStore(file)).close()
  const db = new DatabaseSync(file)
  db.exec(sql)
  db.close()
}

test('the file, what lies beside it and its folder are their owner’s alone', async () => {
  const store = await openStore(file)
  expect(modeOf(join(folder, 'data'))).toBe(0o700)
  for (const name of [file, `${file}-wal`, `${file}-shm`]) expect([name, modeOf(name)]).toEqual([name, 0o600])
  await store.close()
})

test('a file that others could read is closed to them', async () => {
  await changed('select 1')
  chmodSync(file, 0o644)
  const store = await openStore(file)
  expect(modeOf(file)).toBe(0o600)
  await store.close()
})

test('every commit is made durable: WAL, synchronous=FULL', async () => {
  const store = await openStore(file)
  const db = new DatabaseSync(file)
  expect(db.prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'wal' })
  db.close()
  await store.close()
})

test('a newer schema is refused by its number, and nothing is changed', async () => {
  await changed(`insert into schema_version values (${newest + 5}, 'of the future', 0)`)
  await expect(openStore(file)).rejects.toMatchObject({
    code: 'store_newer',
    message: expect.stringMatching(`version ${newest + 5}, this Portal knows up to ${newest}. Start that newer Portal`),
  })
})

test('a file that is no database, or cut short, is refused as damaged, and left as it is', async () => {
  await changed("insert into installation (id, version, doc) values ('a', 1, '{}')")
  writeFileSync(join(folder, 'noise.db'), 'this was a database once, and is none any more'.repeat(200))
  await expect(openStore(join(folder, 'noise.db'))).rejects.toMatchObject({ code: 'store_damaged' })
  const { size } = statSync(file)
  const cut = join(folder, 'cut.db')
  writeFileSync(cut, readFileSync(file).subarray(0, size - 5000))
  await expect(openStore(cut)).rejects.toMatchObject({ code: 'store_damaged', message: expect.stringContaining(cut) })
  expect(statSync(cut).size).toBe(size - 5000)
})

test('a flipped page is named as damage when the file is opened', async () => {
  await changed("insert into installation (id, version, doc) values ('a', 1, '{}')")
  const fd = openSync(file, 'r+')
  writeSync(fd, Buffer.alloc(4096, 0x5a), 0, 4096, 4096 * 3)
  closeSync(fd)
  await expect(openStore(file)).rejects.toMatchObject({ code: 'store_damaged' })
})

test('another program’s database is refused and left as it is', async () => {
  const other = join(folder, 'other.db')
  const db = new DatabaseSync(other)
  db.exec('create table theirs (a)')
  db.close()
  await expect(openStore(other)).rejects.toMatchObject({ code: 'store_foreign' })
  const again = new DatabaseSync(other)
  expect(again.prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'delete' })
  again.close()
})

test('a place that cannot be written, or is no store, says so', async () => {
  writeFileSync(join(folder, 'a-file'), '')
  await expect(openStore(join(folder, 'a-file', 'portal.db'))).rejects.toMatchObject({ code: 'store_failed' })
  await expect(openStore('mysql://user:secret@host/db')).rejects.toThrow(/^(?!.*secret).*postgresql:\/\//)
})

test('network file systems are known by name; the nearest mount counts', () => {
  const mounts = [
    '22 1 254:0 / / rw,relatime - ext4 /dev/vda rw',
    '40 22 0:40 / /home rw,relatime shared:1 - nfs4 server:/home rw,vers=4.2',
    '41 40 254:1 / /home/local rw - xfs /dev/vdb rw',
    '42 22 0:41 / /mnt/my\\040cloud rw - fuse.sshfs me@host:/ rw',
    '43 22 0:42 / /sandbox rw - 9p none rw,trans=fd,rfdno=4',
    '44 22 0:43 / /mnt/c rw - 9p drvfs rw,aname=drvfs;path=C:\\134,trans=fd',
    '45 22 0:44 / /over rw - ext4 /dev/vdc rw',
    '46 45 0:45 / /over rw - cifs //server/share rw',
  ].join('\n')
  const types = [
    '/var',
    '/home/ann',
    '/homework',
    '/home/local/x',
    '/mnt/my cloud/x',
    '/sandbox',
    '/mnt/c/u',
    '/over/x',
  ]
  expect(types.map((path) => networkFileSystemOf(path, mounts))).toEqual([
    null,
    'nfs4',
    null,
    null,
    'fuse.sshfs',
    null,
    '9p',
    'cifs',
  ])
  expect(networkFileSystemOf('/anywhere', '')).toBeNull()
})
