import type { Client } from '../../contract/client.ts'
import { PortalError } from '../../contract/errors.ts'
import type { JobView } from '../../contract/schemas.ts'
import type { Cli } from '../context.ts'
import { homeOf, reach } from '../control/reach.ts'
import { define, flag, json, text, value, values } from '../define.ts'
import { usage } from '../failure.ts'
import { bindingText } from '../jobs.ts'
import { needFlags, needsOf, type NeedFlags } from '../needs.ts'
import { pairs } from '../parse.ts'
import { settingFlags, settingsOf, typed, type SettingFlags } from '../settings.ts'

interface Flags extends NeedFlags, SettingFlags {
  readonly detach?: boolean
  readonly name?: string
  readonly env?: readonly string[]
  readonly workdir?: string
  readonly noWorkdir?: boolean
  readonly output?: readonly string[]
  readonly checkpoint: 'auto' | 'sdk' | 'none'
  readonly json?: boolean
}

export const command = define<Flags, string[]>({
  brief: 'Run a command as a job and follow its log',
  about: [
    'Runs a command as a job, with the current directory sent along (minus what .gitignore and .portalignore leave out),',
    'and follows its log. Starts a control plane if none runs. Ends with the exit code of the command; 75 when the job was',
    'suspended. Ctrl-C lets go of the job and says how to follow, suspend and end it: it never ends it.',
  ].join('\n'),
  usage: ['[flags] -- COMMAND [ARGUMENTS]', '[flags] COMMAND [ARGUMENTS]'],
  examples: [
    ['portal run -- python3 train.py', 'wherever it costs least'],
    ['portal run -d --name nightly --on practice -- node simulate.js', 'started on one connection, not followed'],
    ['portal run --gpu A100:2 --memory 64GiB --ttl 12h -- ./train.sh', 'with needs and a time limit'],
    ['portal run --output results -e SEED -e LR=0.1 -- python3 fit.py', 'keep a folder, pass variables on'],
    ['portal run --set checkpoint.keep=7d -- python3 train.py', 'with any setting by its key'],
  ],
  parameters: {
    flags: {
      detach: flag('print its name and return'),
      name: value('its name; left out: one is made', 'NAME'),
      ...needFlags,
      env: values('a variable for the command; KEY alone passes the one set here on', 'KEY[=VALUE]'),
      workdir: value('the directory to send along; left out: the current one', 'DIR'),
      noWorkdir: flag('send nothing along: it starts in an empty directory'),
      output: values('what it writes and should be kept: a path inside the directory', 'PATH'),
      checkpoint: { kind: 'enum', values: ['auto', 'sdk', 'none'], brief: 'how its state is carried', default: 'auto' },
      ...settingFlags,
      json,
    },
    aliases: { d: 'detach', n: 'name', e: 'env', o: 'output', w: 'workdir' },
    positional: {
      kind: 'array',
      parameter: {
        parse: text,
        brief: 'the program and its arguments; everything after it is its own',
        placeholder: 'COMMAND',
      },
    },
  },
  async run(cli, flags, ...words) {
    if (words.length === 0) throw usage('there is no command to run', 'portal run [flags] -- COMMAND [ARGUMENTS]')
    if (flags.noWorkdir && flags.workdir !== undefined)
      throw usage('--no-workdir and --workdir contradict each other', 'leave one out')
    const settings = settingsOf(flags)
    const env = typed(() => pairs(flags.env ?? [], 'KEY=VALUE of a variable', cli.env))
    const { client, workdir } = await prepare(cli, flags)
    const create = async (sha256: string | null): Promise<JobView | null> => {
      // from here on there is a job, which Ctrl-C lets go of
      if (cli.interrupted.aborted) return null
      return client.createJob({
        body: {
          command: words,
          env,
          workdir: sha256,
          outputs: flags.output ?? [],
          needs: needsOf(flags),
          checkpoint: flags.checkpoint,
          settings,
          ...(flags.name === undefined ? {} : { name: flags.name }),
          ...(flags.on === undefined ? {} : { on: flags.on }),
        },
      })
    }
    const job = await withWorkdir(workdir, create)
    if (job === null) return 130
    if (flags.detach) {
      if (flags.json) cli.json(job)
      else cli.print(job.name)
      const binding = bindingText(job)
      if (binding !== null) cli.note(cli.errorColors.dim(`portal: ${job.name} is ${binding}`))
      return
    }
    const { followJob } = await import('../follow-job.ts')
    return followJob(cli, client, job, { after: 0, asJson: flags.json === true })
  },
})

interface Workdir {
  /** the archive of these very files, where they were sent before; it may be gone there */
  readonly remembered: string | null
  send(): Promise<string | null>
}

/** Looks at the directory and finds the control plane. */
const prepare = async (
  cli: Cli,
  { workdir, noWorkdir }: Flags,
): Promise<{ client: Client; workdir: Workdir | null }> => {
  if (noWorkdir) return { client: await reach(cli), workdir: null }
  const { lookAtWorkdir, rememberedWorkdir, sendWorkdir } = await import('../workdir/send.ts')
  // looked at first: what is refused here should not have started anything
  const { directory, listing } = await lookAtWorkdir(cli, workdir)
  const client = await reach(cli)
  const home = homeOf(cli)
  return {
    client,
    workdir: {
      remembered: rememberedWorkdir(home, directory, listing),
      send: () => sendWorkdir(cli, client, home, directory, listing),
    },
  }
}

/** Makes the job with the directory that it needs, which is packed and sent only where the control plane lacks it. */
const withWorkdir = async <Job>(
  workdir: Workdir | null,
  create: (sha256: string | null) => Promise<Job>,
): Promise<Job> => {
  if (workdir === null) return create(null)
  if (workdir.remembered !== null)
    try {
      return await create(workdir.remembered)
    } catch (error) {
      if (!(error instanceof PortalError) || error.code !== 'workdir_not_found') throw error
    }
  return create(await workdir.send())
}
