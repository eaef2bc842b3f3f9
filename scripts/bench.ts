/**
 * Every benchmark, one after another, and one table of what was seen against what is promised:
 *
 *     npm run bench                     all of them (some minutes)
 *     npm run bench -- cli logs         some of them, by name
 *     npm run bench -- --keep           also written down in docs/performance.md
 *     npm run bench -- --note='…'       with a word on how the machine was
 *
 * Figures of a busy machine are worth little: the load is told with them. Ends with code 1 where a goal was missed.
 */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, totalmem, type as system, release } from 'node:os'
import { mark, table, type Row } from '../test/performance/rows.ts'

interface Bench {
  readonly title: string
  readonly file: string
  readonly args: readonly string[]
}

const benches: Readonly<Record<string, Bench>> = {
  cli: { title: 'The command line, and a whole run', file: 'cli.bench.ts', args: [] },
  keeper: { title: 'Keepers', file: 'keeper.bench.ts', args: [] },
  idle: { title: 'Jobs that run and do nothing', file: 'idle.bench.ts', args: [] },
  logs: { title: 'A log that is followed', file: 'logs.bench.ts', args: [] },
  http: { title: 'Followed logs over HTTP alone', file: 'http.bench.ts', args: ['5'] },
  python: { title: 'Safe points in Python', file: 'safe_point.py', args: [] },
  node: { title: 'Safe points in Node', file: 'safe-point-node.bench.ts', args: [] },
  checkpoint: { title: 'Checkpoints', file: 'checkpoint.bench.ts', args: ['256', '3'] },
  store: { title: 'The store', file: 'store.bench.ts', args: ['100000'] },
}

const document = 'docs/performance.md'
const words = process.argv.slice(2)
const keep = words.includes('--keep')
const note = words.find((word) => word.startsWith('--note='))?.slice('--note='.length)
const asked = words.filter((word) => !word.startsWith('--'))
for (const name of asked)
  if (!Object.hasOwn(benches, name)) {
    console.error(`there is no benchmark ${name}: it is one of ${Object.keys(benches).join(', ')}`)
    process.exit(2)
  }

if (!existsSync('dist/cli.js') && (await run(process.execPath, ['scripts/build.ts'])).code !== 0) process.exit(1)

const rows: Row[] = []
let broken = 0
for (const name of asked.length > 0 ? asked : Object.keys(benches)) {
  const bench = benches[name] as Bench
  const started = performance.now()
  const load = loadavg()[0] ?? 0
  const { output } = await run(programOf(bench.file), [`test/performance/${bench.file}`, ...bench.args, '--json'])
  const seen = parse(output)
  console.log(`\n${bench.title} (${((performance.now() - started) / 1000).toFixed(0)} s)`)
  if (seen === null) {
    broken++
    console.log('it ended without figures')
    continue
  }
  console.log(table(seen))
  rows.push(...seen)
  if (keep) put(name, section(name, bench, seen, load))
}

const missed = rows.filter(({ ok }) => ok === false)
const held = rows.filter(({ ok }) => ok === true)
console.log(`\n${held.length} goals held, ${missed.length} missed${broken > 0 ? `, ${broken} benchmarks broke` : ''}`)
for (const { what, seen, goal } of missed) console.log(`  missed: ${what}: ${seen}, goal ${goal}`)
process.exitCode = missed.length > 0 || broken > 0 ? 1 : 0

function programOf(file: string): string {
  return file.endsWith('.py') ? 'python3' : process.execPath
}

function run(program: string, args: readonly string[]): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (bytes: Buffer) => (output += bytes.toString()))
    child.once('error', ({ message }) => console.error(`${program}: ${message}`))
    child.once('close', (code) => resolve({ code, output }))
  })
}

/** A benchmark's last line is its rows. */
function parse(output: string): readonly Row[] | null {
  try {
    const rows: unknown = JSON.parse(output.trim().split('\n').at(-1) ?? '')
    return Array.isArray(rows) ? (rows as Row[]) : null
  } catch {
    return null
  }
}

/** One benchmark's part of the document. */
function section(name: string, { title, file, args }: Bench, seen: readonly Row[], load: number): string {
  const command = [file.endsWith('.py') ? 'python3' : 'node', `test/performance/${file}`, ...args].join(' ')
  const machine = `${availableParallelism()} cores (${(cpus()[0]?.model ?? '').trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB`
  const cell = (text: string): string => text.replaceAll('|', '\\|')
  return [
    begin(name),
    '',
    `## ${title}`,
    '',
    `\`${command}\`, ${new Date().toISOString().slice(0, 10)}, ${machine}, ${system()} ${release()}, Node ${process.versions.node}; load ${load.toFixed(1)} when it began${note === undefined ? '' : `; ${note}`}.`,
    '',
    '| what | seen | goal | held | what limits it |',
    '| --- | --- | --- | --- | --- |',
    ...seen.map(
      (row) => `| ${[row.what, row.seen, row.goal ?? '', mark(row), row.limits ?? ''].map(cell).join(' | ')} |`,
    ),
    '',
    end(name),
  ].join('\n')
}

function begin(name: string): string {
  return `<!-- bench ${name} -->`
}
function end(name: string): string {
  return `<!-- end ${name} -->`
}

/** Replaces a benchmark's part of the document, or adds it. */
function put(name: string, text: string): void {
  const before = readFileSync(document, 'utf8')
  const from = before.indexOf(begin(name))
  const to = before.indexOf(end(name))
  const after =
    from >= 0 && to > from
      ? before.slice(0, from) + text + before.slice(to + end(name).length)
      : `${before.trimEnd()}\n\n${text}\n`
  writeFileSync(document, after)
}
