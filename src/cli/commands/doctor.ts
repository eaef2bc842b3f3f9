import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { homeFiles } from '../../contract/home.ts'
import type { Cli } from '../context.ts'
import { homeOf, reach, servingNow } from '../control/reach.ts'
import { define, json } from '../define.ts'
import { fail, guarded, ok, warn, type Finding } from '../doctor/check.ts'
import * as homes from '../doctor/home.ts'
import * as machine from '../doctor/machine.ts'
import { plain } from '../format.ts'
import { PortalError } from '../../contract/errors.ts'
import { isOlder, version } from '../version.ts'

export const command = define<{ readonly json?: boolean }>({
  brief: 'Check this installation',
  about:
    'Looks at everything that Portal rests on here, one line each, and says what to do about what is not in order. Exit code 1 when something is broken; a warning is none. Starts nothing.',
  examples: [
    ['portal doctor', 'one line for each thing it looks at'],
    ['portal doctor --json', 'the same for a script'],
  ],
  parameters: { flags: { json } },
  async run(cli, flags) {
    const findings = await examine(cli)
    const broken = findings.some(({ is }) => is === 'fail')
    if (flags.json) cli.json({ ok: !broken, checks: findings })
    else {
      const width = Math.max(...findings.map(({ name }) => name.length))
      for (const finding of findings) cli.print(line(cli, finding, width))
    }
    return broken ? 1 : 0
  },
})

/** Every look, in the order in which one thing rests on another. */
const examine = async (cli: Cli): Promise<readonly Finding[]> => {
  const home = homeOf(cli)
  const looks = await Promise.all([
    guarded('node', machine.node),
    guarded('home', () => homes.home(home)),
    guarded('token', () => homes.token(homeFiles.token(home))),
    guarded('control plane', () => controlPlane(cli, home)),
    guarded('python3', machine.python),
    guarded('namespaces', machine.namespaces),
    guarded('cgroups', machine.cgroups),
    guarded('checkpoints', () => homes.checkpointDirectory(existing(homeFiles.checkpoints(home)))),
    guarded('clock', machine.clocks),
    guarded('disk', () => machine.disk(existing(home))),
  ])
  return withoutRepeats(looks.flat())
}

const badness = { ok: 0, warn: 1, fail: 2 } as const

/** What the control plane and this command both looked at is told once, by the one that found more. */
const withoutRepeats = (findings: readonly Finding[]): readonly Finding[] =>
  findings.filter((finding, index) =>
    findings.every(
      (other, at) =>
        at === index ||
        other.name !== finding.name ||
        (at < index ? badness[other.is] < badness[finding.is] : badness[other.is] <= badness[finding.is]),
    ),
  )

/** Asked about itself where it runs; that none runs is no fault, since commands start one. */
const controlPlane = async (cli: Cli, home: string): Promise<readonly Finding[]> => {
  const serving = servingNow(home)
  if (serving === null) return [ok('control plane', 'none runs; the next command that needs one starts it')]
  const client = await reach(cli, { start: false })
  try {
    const health = await client.health({ timeoutMs: 5000 })
    const { checks } = await client.doctor({ timeoutMs: 20_000 })
    const own =
      health.version === version
        ? ok('control plane', `version ${version}, process ${health.pid}, ${serving.url}`)
        : isOlder(health.version, version)
          ? warn(
              'control plane',
              `version ${plain(health.version)} is older than this command's (${version})`,
              'the next command replaces it; jobs go on',
            )
          : warn(
              'control plane',
              `version ${plain(health.version)} is newer than this command's (${version})`,
              'update this command',
            )
    return [
      own,
      ...checks.map(({ name, is, sentence, advice }) =>
        (is === 'good' ? ok : is === 'warning' ? warn : fail)(name, sentence, advice ?? ''),
      ),
    ]
  } catch (error) {
    if (!(error instanceof PortalError)) throw error
    return [
      fail(
        'control plane',
        `process ${serving.pid} does not answer at ${serving.url}: ${error.message}`,
        `look into ${homeFiles.log(home)}; end it with \`kill ${serving.pid}\`, and the next command starts a new one`,
      ),
    ]
  }
}

/** The nearest directory that is there: what can be known of one that is not is known from where it would lie. */
const existing = (path: string): string => (existsSync(path) ? path : existing(dirname(path)))

const line = (cli: Cli, { name, is, says, advice }: Finding, width: number): string => {
  const { green, yellow, red, dim } = cli.colors
  const mark = { ok: green('ok  '), warn: yellow('warn'), fail: red('fail') }[is]
  const head = `${mark}  ${name.padEnd(width)}  ${plain(says)}`
  return advice === '' ? head : `${head}\n${' '.repeat(8 + width)}${dim(plain(advice))}`
}
