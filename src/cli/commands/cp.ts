import { lstat, mkdir } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { reach } from '../control/reach.ts'
import { define, json, text } from '../define.ts'
import { failed, usage } from '../failure.ts'
import { count, size } from '../format.ts'
import { jobArgument } from '../jobs.ts'
import { jobAndPath } from '../parse.ts'
import { typed } from '../settings.ts'

export const command = define<{ readonly json?: boolean }, [string, string]>({
  brief: "Copy a job's output here",
  about:
    'Copies a declared output of a job, or a file inside one, to this machine: while it runs as it grows, after its end as it was left. Into DEST where that is a directory, else as DEST.',
  examples: [
    ['portal cp nightly:results .', 'an output, into the current directory'],
    ['portal cp nightly:results/model.bin best.bin', 'one file, under another name'],
    ['portal cp nightly: out', 'all outputs, into a directory'],
  ],
  parameters: {
    flags: { json },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: text,
          brief: 'the job and the path of the output',
          placeholder: 'JOB:PATH',
          proposeCompletions: jobArgument.proposeCompletions,
        },
        { parse: text, brief: 'where to: a directory, or a new name', placeholder: 'DEST' },
      ],
    },
  },
  async run(cli, flags, source, destination) {
    const { job, path } = typed(() => jobAndPath(source))
    if (destination.includes(':') && !destination.startsWith('/') && !destination.startsWith('.'))
      throw usage('outputs are copied from a job to this machine, not the other way', 'portal cp JOB:PATH DEST')
    const client = await reach(cli)
    const target = resolve(cli.directory, destination)
    const isDirectory = (await lstat(target).catch(() => null))?.isDirectory() ?? false
    // `a/b/c` arrives under that name, and lies at DEST/c or at DEST afterwards
    const into = path === '' || isDirectory ? target : dirname(target)
    const name = path === '' ? null : isDirectory ? basename(path) : basename(target)
    const archive = await client.readOutputs({
      params: { ref: job },
      query: path === '' ? {} : { path },
      signal: cli.interrupted,
    })
    await mkdir(into, { recursive: true })
    const { Unpack } = await import('../tar.ts')
    let files = 0
    let bytes = 0
    const unpack = new Unpack({
      cwd: into,
      strict: true,
      // a new file takes the place of an old one; what follows a link outwards is refused by the unpacker
      unlink: true,
      filter: (_, entry) => {
        if (!('header' in entry)) return false
        const renamed = name === null ? entry.path : renamedTo(entry.path, path, name)
        if (renamed === null) return false
        entry.path = renamed
        if (entry.type === 'File') {
          files++
          bytes += entry.size
        }
        return true
      },
    })
    await pipeline(archive, unpack)
    if (files === 0 && path !== '' && (await lstat(join(into, name as string)).catch(() => null)) === null)
      throw failed('output_absent', `${job} has not written ${path} yet`, 'Try again when it has.')
    if (flags.json) cli.json({ job, path, to: name === null ? into : join(into, name), files, bytes })
    else cli.print(`${count(files, 'file')}, ${size(bytes)} to ${name === null ? into : join(into, name)}`)
  },
})

/** `a/b/c/d` asked for as `a/b/c` and to be called `x`: `x/d`. Null: not of what was asked for. */
const renamedTo = (entry: string, asked: string, name: string): string | null => {
  const plain = entry.replace(/^(\.\/)+/, '').replace(/\/+$/, '')
  if (plain === asked) return name
  if (plain.startsWith(`${asked}/`)) return `${name}${plain.slice(asked.length)}`
  return null
}
