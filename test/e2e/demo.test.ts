import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
let folder: string | null = null
afterEach(() => {
  if (folder !== null) rmSync(folder, { recursive: true, force: true })
  folder = null
})

const demo = (path: string) =>
  new Promise<{ code: number | null; output: string }>((settle, reject) => {
    const child = spawn(process.execPath, ['scripts/demo.ts'], {
      cwd: root,
      env: { ...process.env, PATH: path },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes: Buffer) => (output += bytes.toString()))
    child.once('error', reject)
    child.once('close', (code) => settle({ code, output }))
  })

const shown = ['same loss, same weights to the last bit', 'is named, and the job runs on', 'nothing is left behind']

test('the demo ends with the weights of the uninterrupted run, and leaves nothing behind', async () => {
  const { code, output } = await demo(process.env['PATH'] ?? '')
  for (const words of shown) expect(output).toContain(words)
  expect(code).toBe(0)
})

test('without python3 it is the Node SDK that does it', async () => {
  folder = mkdtempSync(join(tmpdir(), 'portal-path-'))
  writeFileSync(join(folder, 'python3'), '#!/bin/sh\nexit 127\n')
  chmodSync(join(folder, 'python3'), 0o755)
  symlinkSync(process.execPath, join(folder, 'node'))
  const { code, output } = await demo(`${folder}:${process.env['PATH'] ?? ''}`)
  for (const words of shown) expect(output).toContain(words)
  expect(output).toContain('node train.mjs')
  expect(code).toBe(0)
})
