/**
 * Shows that the property can fail: switches off one line of safety at a time, in a copy of the sources, and looks how many
 * scripts it takes until that is found. `node test/properties/mutants.ts [RUNS] [WORD]`; WORD picks those that it is part of.
 */
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { editsOf, mutants, type Mutant } from './safety.ts'

const here = resolve(import.meta.dirname, '../..')
const [runs = '300', word = ''] = process.argv.slice(2)

/** Plays scripts with one line changed. @returns how many it took; null: nothing was noticed */
async function hunt(mutant: Mutant): Promise<{ readonly found: number | null; readonly how: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'portal-mutant-'))
  try {
    for (const part of ['src', 'package.json', 'test/properties'])
      cpSync(join(here, part), join(folder, part), { recursive: true })
    symlinkSync(join(here, 'node_modules'), join(folder, 'node_modules'))
    for (const { file, from, to } of editsOf(mutant)) {
      const path = join(folder, file)
      const text = readFileSync(path, 'utf8')
      if (text.split(from).length !== 2) return { found: null, how: `the line is not there (any more): ${from}` }
      writeFileSync(
        path,
        text.replace(from, () => to),
      )
    }
    const child = spawn(process.execPath, [join(folder, 'test/properties/hunt.ts'), runs, '1'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    child.stdout.on('data', (bytes) => (said += bytes))
    child.stderr.on('data', (bytes) => (said += bytes))
    await new Promise((done) => child.once('close', done))
    const [found, ...how] = said.trim().split('\n')
    return found && /^\d+$/.test(found)
      ? { found: Number(found), how: how[0] ?? '' }
      : { found: found === 'none' ? null : 0, how: said.slice(0, 300) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const chosen = mutants.filter(({ what }) => what.includes(word))
const waiting = [...chosen]
let missed = 0
const work = async (): Promise<void> => {
  for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
    const { found, how } = await hunt(mutant)
    if (found === null) missed += 1
    console.log(
      `${found === null ? 'NOT FOUND' : String(found).padStart(9)}  ${mutant.what}${how ? `: ${how.slice(0, 160)}` : ''}`,
    )
  }
}
await Promise.all([work(), work()])
console.log(`${chosen.length - missed} of ${chosen.length} found within ${runs} scripts`)
process.exitCode = missed > 0 ? 1 : 0
