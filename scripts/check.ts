/** Everything that must hold before a commit: types, lint, format, dead code, unit tests (arrows and bans among them). */
import { spawn } from 'node:child_process'

const steps: Record<string, readonly string[]> = {
  types: ['tsc'],
  lint: ['oxlint', '--deny-warnings'],
  format: ['oxfmt', '--check'],
  dead: ['knip', '--no-progress'],
  unit: ['vitest', 'run', '--project', 'unit', '--reporter=dot'],
}

const run = (name: string, command: readonly string[]) =>
  new Promise<boolean>((resolve) => {
    const started = Date.now()
    const child = spawn(process.execPath, [`node_modules/.bin/${command[0]}`, ...command.slice(1)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    child.stdout.on('data', (bytes) => (output += bytes))
    child.stderr.on('data', (bytes) => (output += bytes))
    child.on('close', (code) => {
      const seconds = ((Date.now() - started) / 1000).toFixed(1)
      console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`)
      if (code !== 0) console.log(output)
      resolve(code === 0)
    })
  })

const quick = Object.entries(steps).filter(([name]) => name !== 'unit')
const results = await Promise.all(quick.map(([name, command]) => run(name, command)))
results.push(await run('unit', steps.unit as readonly string[]))
process.exit(results.every(Boolean) ? 0 : 1)
