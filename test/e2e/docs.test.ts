import { spawn } from 'node:child_process'
import { cpSync, globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { examples, Installation, python, root, whyNoPython } from './support.ts'

interface Command {
  readonly line: number
  readonly typed: string
  /** `# exits with 3` behind it */
  readonly code: number
}

/** The commands of a page: lines that begin with `$ `, and those behind with `> `, in blocks that begin with ```console run. */
function commandsOf(page: string): readonly Command[] {
  const commands: Command[] = []
  let inside = false
  for (const [n, line] of readFileSync(page, 'utf8').split('\n').entries()) {
    if (line.startsWith('```')) inside = line === '```console run'
    else if (inside && line.startsWith('$ ')) {
      const code = /#.*exits with (\d+)/.exec(line)?.[1]
      commands.push({ line: n + 1, typed: line.slice(2), code: Number(code ?? 0) })
    } else if (inside && line.startsWith('>')) {
      const last = commands.pop()
      if (last) commands.push({ ...last, typed: `${last.typed}\n${line.slice(2)}` })
    }
  }
  return commands
}

const pages = ['README.md', 'ARCHITECTURE.md', ...globSync('docs/**/*.md', { cwd: root })]
  .map((page) => ({ page: relative(root, join(root, page)), commands: commandsOf(join(root, page)) }))
  .filter(({ commands }) => commands.length > 0)

if (python === null) console.warn(`what the documents show is not run: ${whyNoPython}`)

/** Runs a line as somebody types it, in a shell. */
const type = (typed: string, portal: Installation) =>
  new Promise<{ readonly code: number | null; readonly said: string }>((settle, reject) => {
    const child = spawn('bash', ['-o', 'pipefail', '-c', typed], {
      cwd: portal.person.work,
      env: {
        PATH: `${join(root, 'bin')}:${process.env['PATH'] ?? ''}`,
        HOME: portal.folder,
        PORTAL_HOME: portal.home,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (said += bytes.toString()))
    child.once('error', reject)
    child.once('close', (code) => settle({ code, said }))
  })

/** Nobody types so fast that what was started before has not begun. */
const begun = (portal: Installation) =>
  expect
    .poll(
      async () => (await portal.client.jobs()).jobs.some(({ state }) => state === 'queued' || state === 'starting'),
      {
        timeout: 20_000,
      },
    )
    .toBe(false)

describe('every command in the documents does what it says', () => {
  test('there are some', () => {
    expect(pages.map(({ page }) => page)).toContain('README.md')
  })

  test.skipIf(python === null).each(pages)('$page', ({ page, commands }) =>
    Installation.with(async (portal) => {
      cpSync(examples, join(portal.person.work, 'examples'), { recursive: true })
      for (const { line, typed, code } of commands) {
        await begun(portal)
        const ran = await type(typed, portal)
        expect(ran, `${page}:${line}: ${typed}\n${ran.said}`).toMatchObject({ code })
      }
    }),
  )
})
