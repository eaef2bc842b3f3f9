/**
 * What the command line costs: `node test/performance/cli.bench.ts [PAIRS]`, interleaved pairs, their medians compared.
 *
 * Goals: a start at most 1.4 × bare Node 24's; `portal run -- true` on a warm control plane at most 50 ms over `true`.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endProcessesNaming } from '../support/leftovers.ts'

const root = join(import.meta.dirname, '../..')
const pairs = Number(process.argv[2] ?? 31)
const folder = mkdtempSync(join(tmpdir(), 'portal-bench-'))
const work = join(folder, 'work')
mkdirSync(work)
const env = { ...process.env, PORTAL_HOME: join(folder, 'home'), XDG_CACHE_HOME: join(folder, 'cache') }

const took = (program: string, args: readonly string[]): Promise<number> =>
  new Promise((resolve, reject) => {
    const started = performance.now()
    const child = spawn(program, [...args], { cwd: work, env, stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.resume()
    child.stderr.resume()
    child.once('error', reject)
    child.once('close', (code) =>
      code === 0
        ? resolve(performance.now() - started)
        : reject(new Error(`${program} ${args.join(' ')} ended with ${code}`)),
    )
  })

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number

/** Runs each in turn, so that a busy moment hits all alike. */
const compare = async (
  programs: Readonly<Record<string, readonly [string, ...string[]]>>,
  times: number,
): Promise<Record<string, number>> => {
  const all = Object.fromEntries(Object.keys(programs).map((name) => [name, [] as number[]]))
  for (let n = -2; n < times; n++)
    for (const [name, [program, ...args]] of Object.entries(programs)) {
      const ms = await took(program, args)
      if (n >= 0) (all[name] as number[]).push(ms)
    }
  return Object.fromEntries(Object.entries(all).map(([name, values]) => [name, median(values)]))
}

const show = (what: string, value: string, goal: string) =>
  console.log(`  ${what.padEnd(44)} ${value.padStart(10)}   ${goal}`)

try {
  if (!existsSync(join(root, 'dist/cli.js'))) throw new Error('nothing is built: npm run build')
  const empty = join(work, 'empty.mjs')
  writeFileSync(empty, '')
  const node = process.execPath
  const starts = await compare(
    {
      'bare Node': [node, empty],
      'portal version': [node, join(root, 'dist/cli.js'), 'version'],
      'portal --help': [node, join(root, 'dist/cli.js'), '--help'],
      'portal --help by its shim': [join(root, 'bin/portal'), '--help'],
    },
    pairs,
  )
  const bare = starts['bare Node'] as number
  for (const [name, ms] of Object.entries(starts))
    show(name, `${ms.toFixed(1)} ms`, name === 'bare Node' ? '' : `${(ms / bare).toFixed(2)} × bare; at most 1.4`)

  await took(join(root, 'bin/portal'), ['serve', '--detach'])
  const runs = await compare(
    {
      true: ['true'],
      'portal ps': [join(root, 'bin/portal'), 'ps'],
      'portal run --no-workdir -- true': [
        join(root, 'bin/portal'),
        'run',
        '--no-workdir',
        '--on',
        'this-machine',
        '--',
        'true',
      ],
      'portal run -- true': [join(root, 'bin/portal'), 'run', '--on', 'this-machine', '--', 'true'],
    },
    Math.ceil(pairs / 2),
  )
  for (const [name, ms] of Object.entries(runs))
    show(
      name,
      `${ms.toFixed(1)} ms`,
      name.includes('run')
        ? `${(ms - bare - (runs['true'] as number)).toFixed(1)} ms over bare Node and true; at most 50`
        : '',
    )
} finally {
  await took(join(root, 'bin/portal'), ['serve', 'stop']).catch(() => {})
  await endProcessesNaming(folder)
  rmSync(folder, { recursive: true, force: true })
}
