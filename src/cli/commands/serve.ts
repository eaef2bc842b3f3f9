import { buildRouteMap } from '@stricli/core'
import { portalError } from '../../contract/errors.ts'
import { homeFiles } from '../../contract/home.ts'
import type { Cli } from '../context.ts'
import { homeOf, reach, servingNow } from '../control/reach.ts'
import { define, flag, json, value } from '../define.ts'
import { ago, plain } from '../format.ts'
import { whole } from '../parse.ts'
import { facts } from '../table.ts'

interface Flags {
  readonly detach?: boolean
  readonly port?: number
  readonly host?: string
  readonly json?: boolean
}

const start = define<Flags>({
  brief: 'Run the control plane here until it is stopped',
  about:
    'Runs the control plane of the data directory in the foreground. Other commands start one by themselves where none runs; jobs go on when it is stopped, until their leases run out.',
  examples: [
    ['portal serve', 'in the foreground, until Ctrl-C'],
    ['portal serve --detach', 'in the background'],
    ['portal serve status', 'whether one runs, and where'],
    ['portal serve stop', 'end it'],
  ],
  parameters: {
    flags: {
      detach: flag('in the background; its log is kept in the data directory'),
      port: {
        kind: 'parsed',
        parse: whole(0, 65_535),
        brief: 'the port to listen on; left out: a free one',
        placeholder: 'PORT',
        optional: true,
      },
      host: value('the host name it answers to besides localhost', 'NAME'),
      json,
    },
    aliases: { d: 'detach' },
  },
  async run(cli, flags) {
    const home = homeOf(cli)
    const running = servingNow(home)
    if (running) throw portalError('already_serving', { pid: running.pid, home })
    const args = [
      ...(flags.port === undefined ? [] : ['--port', String(flags.port)]),
      ...(flags.host === undefined ? [] : ['--host', flags.host]),
    ]
    if (!flags.detach) return foreground(cli, home, args)
    const { startControlPlane } = await import('../control/start.ts')
    await startControlPlane(cli, home, args)
    const serving = servingNow(home)
    if (flags.json) cli.json({ ...serving, home, log: homeFiles.log(home) })
    else cli.print(`the control plane serves ${home} at ${serving?.url ?? ''} (process ${serving?.pid ?? ''})`)
  },
})

/** The control plane as a process of its own on this terminal: it gets the signals, its end is this command's. */
const foreground = async (cli: Cli, home: string, args: readonly string[]): Promise<number> => {
  const { controlProgram } = await import('../control/start.ts')
  const { spawn } = await import('node:child_process')
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [controlProgram(), ...args], {
      stdio: 'inherit',
      env: { ...cli.env, PORTAL_HOME: home },
    })
    // a terminal sends Ctrl-C to both; a lone SIGTERM to this one is passed on
    cli.interrupted.addEventListener('abort', () => child.kill('SIGTERM'))
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve(code ?? (signal === 'SIGTERM' || signal === 'SIGINT' ? 0 : 1)))
  })
}

const stop = define<{ readonly json?: boolean }>({
  brief: 'End the control plane',
  about: 'Ends the control plane of the data directory and says what becomes of the jobs that run.',
  examples: [['portal serve stop', 'end it; jobs run on until their leases run out']],
  parameters: { flags: { json } },
  async run(cli, flags) {
    const home = homeOf(cli)
    const serving = servingNow(home)
    if (serving === null) throw portalError('not_serving', { home })
    const { stopControlPlane } = await import('../control/start.ts')
    const sentence = await stopControlPlane(home, serving)
    if (flags.json) cli.json({ stopped: true, pid: serving.pid, sentence })
    else cli.print(`the control plane is stopped${sentence ? `; ${plain(sentence)}` : ''}`)
  },
})

const status = define<{ readonly json?: boolean }>({
  brief: 'Say whether a control plane runs, and where',
  about: 'Says whether a control plane serves the data directory. Exit code 5 when none answers; none is started.',
  examples: [['portal serve status', 'whether it runs, where, since when']],
  parameters: { flags: { json } },
  async run(cli, flags) {
    const home = homeOf(cli)
    const client = await reach(cli, { start: false })
    const health = await client.health({ timeoutMs: 5000 })
    const serving = servingNow(home)
    if (flags.json) return cli.json({ ...health, url: serving?.url ?? null, home, log: homeFiles.log(home) })
    const now = cli.now()
    cli.print(
      facts(
        [
          ['serves', home],
          ['at', serving?.url],
          ['process', String(health.pid)],
          ['version', plain(health.version)],
          ['started', ago(health.startedAt, now)],
          ['log', homeFiles.log(home)],
        ],
        cli.colors.dim,
      ),
    )
  },
})

export const command = buildRouteMap<string, Cli>({
  routes: { start, stop, status },
  defaultCommand: 'start',
  docs: {
    brief: 'Run the control plane',
    fullDescription:
      'Runs the control plane of the data directory, says whether one runs, or ends it. Without a word: start.',
  },
})
