import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LogShipper, type LogPiece } from './logs.ts'

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portal-logs-'))
  path = join(folder, 'log')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const text = (piece: LogPiece | null): string | null => piece && Buffer.from(piece.data, 'base64').toString()

test('one piece until the other side said what it has, then on from there', () => {
  writeFileSync(path, 'x'.repeat(600_000))
  const shipper = new LogShipper(path)
  expect(shipper.next(0)?.offset).toBe(0)
  expect(shipper.next(0)).toBe(null)
  // it has more than was just sent: a control plane that an earlier agent had told
  shipper.acknowledged(599_990)
  expect(shipper.next(0)).toMatchObject({ offset: 599_990 })
  expect(shipper.next(0)).toBe(null)
  appendFileSync(path, 'more')
  expect(text(shipper.next(0))).toBe('more')
})

test('what was lost with a connection is sent again from what was acknowledged', () => {
  writeFileSync(path, 'abcdef')
  const shipper = new LogShipper(path)
  shipper.next(0)
  shipper.acknowledged(2)
  expect(text(shipper.next(0))).toBe('cdef')
  shipper.connected()
  expect(shipper.next(0)).toMatchObject({ offset: 2 })
})

test('a control plane that has gone back gets what it lost', () => {
  writeFileSync(path, 'abcdef')
  const shipper = new LogShipper(path)
  shipper.next(0)
  shipper.acknowledged(6)
  shipper.connected()
  shipper.next(0)
  shipper.acknowledged(3)
  expect(text(shipper.next(0))).toBe('def')
})

test('an answer that does not come: the same again after a while', () => {
  writeFileSync(path, 'abc')
  const shipper = new LogShipper(path)
  shipper.next(0)
  expect(shipper.next(4000)).toBe(null)
  expect(text(shipper.next(6000))).toBe('abc')
})

test('no more than 2 MiB run ahead of the answers', () => {
  writeFileSync(path, 'x'.repeat(4 * 1024 * 1024))
  const shipper = new LogShipper(path)
  shipper.next(0)
  shipper.acknowledged(1)
  let bytes = 0
  for (let piece = shipper.next(0); piece; piece = shipper.next(0)) bytes += Buffer.from(piece.data, 'base64').length
  expect(bytes).toBeGreaterThanOrEqual(2 * 1024 * 1024)
  expect(bytes).toBeLessThan(2.5 * 1024 * 1024)
})

test('no file yet is no error', () => {
  const shipper = new LogShipper(path)
  expect(shipper.next(0)).toBe(null)
  expect(shipper.size()).toEqual({ bytes: 0, at: null })
})
