/**
 * What the command line costs: `node test/performance/cli.bench.ts [ROUNDS] [--json]`. Every program is run once a round, so
 * that a busy moment hits all alike; medians are compared. CPU is user and system time of the program and all that it waits for.
 *
 * "Over" is told twice where it matters: over `true` alone, which is all that is left when nothing of Portal is there, and
 * over bare Node and `true`, which is what a command line on Node cannot do without.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { atMost, median, numbers, quantile, rounded, tell, told, type Row } from './rows.ts'
import { portal, Stage } from './stage.ts'
import { cpuOf } from './usage.ts'

const [rounds = 31] = numbers()
const stage = new Stage()

interface Took {
  readonly wall: number[]
  readonly cpu: number[]
}

/** A shell that runs one program each time it is asked: started by the same few instructions as from a terminal. */
class Runner {
  readonly took: Took = { wall: [], cpu: [] }
  readonly #shell: ChildProcess
  readonly #answers: AsyncIterator<string>
  #spent = 0

  constructor(words: readonly string[]) {
    const script = 'while read -r asked; do "$@" </dev/null; echo "$?" >&3; times >&3; done'
    this.#shell = spawn('sh', ['-c', script, 'sh', ...words], {
      cwd: stage.work,
      env: stage.env,
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    })
    this.#shell.stdout?.resume()
    this.#shell.stderr?.resume()
    const told = this.#shell.stdio[3] as NodeJS.ReadableStream
    this.#answers = createInterface(told)[Symbol.asyncIterator]()
  }

  async run(counts: boolean): Promise<void> {
    const started = performance.now()
    this.#shell.stdin?.write('go\n')
    const code = (await this.#answers.next()).value as string
    const wall = performance.now() - started
    await this.#answers.next()
    const spent = seconds((await this.#answers.next()).value as string) * 1000
    if (code !== '0') throw new Error(`${this.#shell.spawnargs.slice(4).join(' ')} ended with ${code}`)
    if (counts) {
      this.took.wall.push(wall)
      this.took.cpu.push(spent - this.#spent)
    }
    this.#spent = spent
  }

  end(): void {
    this.#shell.stdin?.end()
  }
}

/** `0m0.12s 0m0.04s`: user and system. */
const seconds = (line: string): number =>
  line
    .trim()
    .split(/\s+/)
    .map((part) => /^(\d+)m([\d.]+)s$/.exec(part))
    .reduce((sum, match) => sum + Number(match?.[1] ?? 0) * 60 + Number(match?.[2] ?? 0), 0)

/** Runs each in turn. */
const compare = async <Name extends string>(programs: Readonly<Record<Name, readonly string[]>>, times: number) => {
  const runners = Object.entries(programs).map(([name, words]) => [name, new Runner(words as string[])] as const)
  try {
    for (let n = -3; n < times; n++) for (const [, runner] of runners) await runner.run(n >= 0)
  } finally {
    for (const [, runner] of runners) runner.end()
  }
  return Object.fromEntries(runners.map(([name, { took }]) => [name, took])) as Record<Name, Took>
}

/** The kernel counts CPU in steps here and there; their mean is right, a median of few is not. */
const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length
const wallAndCpu = ({ wall, cpu }: Took): string =>
  `${rounded(median(wall))} ms (best tenth ${rounded(quantile(wall, 0.1))} ms), CPU ${rounded(mean(cpu))} ms`

const rows: Row[] = []
try {
  const node = process.execPath
  const empty = join(stage.work, 'empty.mjs')
  writeFileSync(empty, '')
  const starts = await compare(
    {
      bare: [node, empty],
      version: [node, join(portal, '../../dist/cli.js'), '--version'],
      help: [node, join(portal, '../../dist/cli.js'), '--help'],
      shim: [portal, '--version'],
    },
    rounds,
  )
  /** The median of the rounds' ratios: each pair ran within the same moment. */
  const times = (one: Took, what: 'wall' | 'cpu') =>
    what === 'wall'
      ? median(one.wall.map((ms, round) => ms / (starts.bare.wall[round] as number)))
      : mean(one.cpu) / mean(starts.bare.cpu)
  const limits = 'reading and running what a command needs; bare Node reads nothing'
  rows.push(
    told('start: bare Node on an empty file', wallAndCpu(starts.bare)),
    told('start: `portal --version`', wallAndCpu(starts.shim)),
    atMost('start: `portal --version` by Node, time', times(starts.version, 'wall'), 1.4, '× bare Node', limits),
    atMost('start: `portal --version` by Node, CPU', times(starts.version, 'cpu'), 1.4, '× bare Node', limits),
    atMost(
      'start: `portal --version` by the shim, time',
      times(starts.shim, 'wall'),
      1.4,
      '× bare Node',
      'the shim is a shell, 1 ms',
    ),
    told('start: `portal --help` by Node, time', `${rounded(times(starts.help, 'wall'))} × bare Node`),
  )

  // by its path: to a shell `true` is a word of its own, and no program is started
  const alone = ['/usr/bin/true', '/bin/true'].find((path) => existsSync(path)) ?? 'true'
  const run = (...words: readonly string[]) => [portal, 'run', '--on', 'this-machine', ...words, '--', 'true']
  await stage.portal('run', '--on', 'this-machine', '--', 'true')
  const others = [stage.controlPlane, stage.agent]
  const before = others.map(cpuOf)
  const runs = await compare(
    {
      true: [alone],
      ps: [portal, 'ps'],
      empty: run('--no-workdir'),
      run: run(),
    },
    rounds,
  )
  const [control, agent] = others.map((pid, n) => (cpuOf(pid) - (before[n] as number)) / ((rounds + 3) * 2))
  const over = (what: (values: readonly number[]) => number): number => what(runs.run.wall) - what(runs.true.wall)
  const best = (values: readonly number[]): number => quantile(values, 0.1)
  /** The best tenth beside it: what it takes when nothing else is at work. */
  const andBest = (row: Row, ms: number): Row => ({ ...row, seen: `${row.seen} (best tenth ${rounded(ms)} ms)` })
  rows.push(
    told('`true` alone', wallAndCpu(runs.true)),
    told('`portal ps`: one question to a control plane', wallAndCpu(runs.ps)),
    told('`portal run --no-workdir -- true`', wallAndCpu(runs.empty)),
    told('`portal run -- true`', wallAndCpu(runs.run)),
    andBest(
      atMost(
        '`portal run -- true` over bare Node and `true`',
        over(median) - median(starts.bare.wall),
        50,
        'ms',
        'three programs and a keeper take turns, 100 ms of CPU in all; each waits for the other’s disk (fsync) and for the kernel’s namespaces and cgroups (RCU)',
      ),
      over(best) - best(starts.bare.wall),
    ),
    andBest(
      atMost(
        '`portal run -- true` over `true` alone',
        over(median),
        50,
        'ms',
        'bare Node’s own start is a good part of it',
      ),
      over(best),
    ),
    told('control plane, CPU of each run', `${rounded(control ?? 0)} ms`),
    told('agent and keeper, CPU of each run', `${rounded(agent ?? 0)} ms`),
  )
} finally {
  await stage.clear()
}
tell(rows)
