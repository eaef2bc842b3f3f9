import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'

/** A PostgreSQL of the test's own, in a temporary folder on a random port, gone with `stop`. */
export interface Postgres {
  /** Makes an empty database and gives its connection string. */
  database(options?: { readonly settings?: string }): Promise<string>
  readonly port: number
  stop(): Promise<void>
}

const startsWithinMs = 20_000

/** Why there is none here and how to get one; null: there is one. */
export function whyNoPostgres(): string | null {
  if (binaries() === null)
    return 'no PostgreSQL server here (initdb is neither on PATH nor under /usr/lib/postgresql): apt-get install postgresql'
  if (process.getuid?.() === 0 && !canBecomePostgres())
    return 'PostgreSQL refuses to run as root and there is no user postgres to run it as: run the tests as another user'
  return null
}

export async function startPostgres(): Promise<Postgres> {
  const bin = binaries()
  if (bin === null) throw new Error(whyNoPostgres() ?? 'no PostgreSQL')
  const root = process.getuid?.() === 0
  const asOwner = (command: string, args: readonly string[]): readonly [string, string[]] =>
    root ? ['runuser', ['-u', 'postgres', '--', join(bin, command), ...args]] : [join(bin, command), [...args]]

  const folder = mkdtempSync(join(tmpdir(), 'portal-postgres-'))
  if (root) chownSync(folder, ownerId('-u'), ownerId('-g'))
  const data = join(folder, 'data')
  const initdb = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync']
  execFileSync(...asOwner('initdb', initdb), { cwd: '/', stdio: 'pipe' })
  const port = await freePort()
  // nothing here needs to outlive a crash of the machine; the commits themselves stay synchronous, as the store demands
  appendFileSync(
    join(data, 'postgresql.conf'),
    [
      "listen_addresses = '127.0.0.1'",
      `port = ${port}`,
      `unix_socket_directories = '${folder}'`,
      'fsync = off',
      'full_page_writes = off',
      'shared_buffers = 64MB',
      'max_connections = 100',
    ].join('\n'),
  )
  const server = spawn(...asOwner('postgres', ['-D', data]), { cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  server.stderr.on('data', (bytes) => (log += bytes))
  const exited = once(server, 'exit')

  const kill = () => {
    const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
    process.kill(pid, 'SIGQUIT')
  }
  const atExit = () => {
    if (server.exitCode === null && existsSync(join(data, 'postmaster.pid'))) kill()
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', atExit)

  const until = Date.now() + startsWithinMs
  while (!(await answers(port))) {
    if (server.exitCode !== null || Date.now() > until) throw new Error(`PostgreSQL did not start:\n${log}`)
    await sleep(50)
  }

  let databases = 0
  return {
    port,
    database: async ({ settings } = {}) => {
      const name = `t${++databases}`
      const client = new Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
      await client.connect()
      await client.query(`create database ${name}`)
      if (settings !== undefined) await client.query(`alter database ${name} set ${settings}`)
      await client.end()
      return `postgresql://postgres@127.0.0.1:${port}/${name}`
    },
    stop: async () => {
      kill()
      await exited
      process.removeListener('exit', atExit)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function binaries(): string | null {
  const version = (folder: string) => Number(/postgresql\/(\d+)/.exec(folder)?.[1])
  const installed = globSync('/usr/lib/postgresql/*/bin').sort((a, b) => version(b) - version(a))
  return (
    [...installed, ...(process.env['PATH'] ?? '').split(delimiter)].find((f) => existsSync(join(f, 'initdb'))) ?? null
  )
}

function canBecomePostgres(): boolean {
  try {
    execFileSync('runuser', ['-u', 'postgres', '--', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const ownerId = (flag: '-u' | '-g'): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

async function answers(port: number): Promise<boolean> {
  const client = new Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}
