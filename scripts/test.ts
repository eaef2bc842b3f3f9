/**
 * Every test that this machine can run, the set-up included: `npm test`, or `npm test -- src/store` for some of them.
 * Ends with one line, `N passed, N failed` (and `, N skipped`), and with code 1 where anything failed.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import config from '../vitest.config.ts'
import { missingServices } from './test/services.ts'

interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: readonly string[]
}

/** A project that is not done by then hangs: what it tested is lost, the others are not. */
const longestProject = 20 * 60_000

const filters = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'portal-test-'))
const began = performance.now()
const results: Counts[] = []
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

const built = await run('build', [join('scripts', 'build.ts')])
if (!built) {
  console.log('the build failed: nothing could be tested')
  end([{ passed: 0, failed: 1, skipped: [] }])
}
for (const name of projects()) results.push(await runProject(name))
end(results)

function projects(): readonly string[] {
  const named = (config.test?.projects ?? []) as readonly { readonly test: { readonly name: string } }[]
  return named.map(({ test }) => test.name)
}

async function runProject(name: string): Promise<Counts> {
  const report = join(folder, `${name}.json`)
  const vitest = ['node_modules/.bin/vitest', 'run', '--project', name, '--passWithNoTests', '--silent=passed-only']
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const succeeded = await run(name, [...vitest, ...reporters, ...filters])
  const counts = countsOf(report)
  // a file that cannot be loaded, or an error outside of any test, fails the run without failing a test
  return succeeded || counts.failed > 0 ? counts : { ...counts, failed: 1 }
}

/** What vitest reported; nothing, where it did not come to it. */
function countsOf(report: string): Counts {
  interface Report {
    readonly numPassedTests: number
    readonly numFailedTests: number
    readonly testResults: readonly {
      readonly status: string
      readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
    }[]
  }
  let read: Report
  try {
    read = JSON.parse(readFileSync(report, 'utf8')) as Report
  } catch {
    return { passed: 0, failed: 0, skipped: [] }
  }
  const left = ['skipped', 'pending', 'todo', 'disabled']
  const unloaded = read.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0)
  return {
    passed: read.numPassedTests,
    failed: read.numFailedTests + unloaded.length,
    skipped: read.testResults.flatMap(({ assertionResults }) =>
      assertionResults.filter(({ status }) => left.includes(status)).map(({ fullName }) => fullName),
    ),
  }
}

/** Runs one of the project's programs with its output shown as it comes. */
function run(name: string, args: readonly string[]): Promise<boolean> {
  const started = performance.now()
  console.log(`\n== ${name}`)
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'inherit', 'inherit'],
      // the programs that were just built are tested, not their sources
      env: { ...process.env, PORTAL_TEST_BUILT: '1', ...(process.stdout.isTTY ? {} : { NO_COLOR: '1' }) },
    })
    const hangs = setTimeout(() => {
      console.log(`${name} is not done after ${longestProject / 60_000} minutes: it is ended`)
      child.kill('SIGKILL')
    }, longestProject)
    child.once('error', (error) => console.log(String(error)))
    child.once('close', (code) => {
      clearTimeout(hangs)
      console.log(`== ${name}: ${code === 0 ? 'ok' : 'FAILED'} in ${seconds(started)}`)
      resolve(code === 0)
    })
  })
}

function end(all: readonly Counts[]): never {
  const sum = (of: (counts: Counts) => number) => all.reduce((total, counts) => total + of(counts), 0)
  const failed = sum((counts) => counts.failed)
  const skipped = all.flatMap((counts) => counts.skipped)
  const missing = filters.length > 0 ? [] : missingServices()
  console.log(`\n${seconds(began)} in all`)
  if (missing.length > 0) console.log('\nNot on this machine, so left out:')
  for (const { what, cure } of missing) console.log(`  - ${what}: ${cure}`)
  if (skipped.length > 0) console.log('\nSkipped:')
  for (const title of skipped) console.log(`  - ${title.trim()}`)
  const line = `${sum((counts) => counts.passed)} passed, ${failed} failed`
  console.log(`\n${skipped.length > 0 ? `${line}, ${skipped.length} skipped` : line}`)
  process.exit(failed > 0 ? 1 : 0)
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`
}
