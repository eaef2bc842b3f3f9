/**
 * The demo: a real training is taken off its spot machine by a notice, resumed, moved to a cheaper one, and ends with the
 * very same weights as an uninterrupted run; then a job that cannot be carried is refused a move and runs on. Everything
 * happens in a folder of its own, and nothing is left behind.
 */
import { once } from 'node:events'
import { join } from 'node:path'
import pc from 'picocolors'
import { DemoError, ran, say, Stage, title, type Shown } from './demo/stage.ts'

const began = performance.now()
const seconds = (from: number): string => `${((performance.now() - from) / 1000).toFixed(1)} s`

/** The jobs in the language that this machine has. */
const choose = async () => {
  const python = await ran(
    'python3',
    ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))'],
    '.',
    process.env,
  ).catch(() => null)
  return python?.code === 0
    ? { program: 'python3', train: 'train.py', connection: 'open_connection.py', value: "state.link['socket']" }
    : { program: 'node', train: 'train.mjs', connection: 'open-connection.mjs', value: 'state.link.socket' }
}

const jobs = await choose()
const stage = new Stage([jobs.train, jobs.connection])
const training = ['--steps', '3000', '--pace', '0.006']
const parts: { part: string; took: string }[] = []

const part = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
  const from = performance.now()
  const result = await work()
  parts.push({ part: name, took: seconds(from) })
  return result
}

/** The same training without Portal, from the beginning to the end. */
const uninterrupted = (): Promise<string> => {
  const root = join(import.meta.dirname, '..')
  const alone =
    jobs.program === 'python3'
      ? ran('python3', [join(root, 'examples', jobs.train), ...training], root, {
          ...process.env,
          PYTHONPATH: join(root, 'sdk/python'),
          PYTHONDONTWRITEBYTECODE: '1',
        })
      : ran(process.execPath, [join(root, 'examples', jobs.train), ...training], root, process.env)
  return alone.then(({ code, stdout, stderr }) => {
    if (code !== 0) throw new DemoError(`the uninterrupted training failed: ${stderr}`)
    return stdout
  })
}

const isAt = (share: number) => (shown: Shown) =>
  shown.state === 'running' && (shown.progress?.done ?? 0) >= share * (shown.progress?.total ?? Infinity)

/** What a log says but for which attempt said it. */
const lines = (log: string): readonly string[] =>
  log
    .trim()
    .split('\n')
    .map((line) => line.replace(/ +attempt \d+$/, ''))

const play = async (): Promise<void> => {
  process.stdout.write(`${pc.bold('Portal')}: one training, three machines, one result\n`)

  title(1, 'A training on a spot machine of the practice cloud')
  const reference = uninterrupted()
  reference.catch(() => {}) // told of when it is awaited
  await part('placed and running', async () => {
    await stage.type([
      'run',
      '-d',
      '--name',
      'train',
      '--on',
      'practice',
      '--spot-only',
      '--',
      jobs.program,
      jobs.train,
      ...training,
    ])
    await stage.until('train', 'running', ({ state }) => state === 'running')
  })
  say('(the same training runs beside it without Portal, never interrupted, to compare with)')
  const first = await stage.until('train', 'a tenth done', isAt(0.1))
  say(`it runs at ${first.offer ?? '?'}, ${first.progress?.done ?? 0} of ${first.progress?.total ?? 0} steps done`)

  title(2, 'The provider takes the machine back')
  const suspended = await part('saved and suspended on the notice', async () => {
    await stage.type(['practice', 'notice', 'train', '--length', '20s'])
    return stage.until('train', 'suspended', ({ state }) => state === 'suspended')
  })
  say(`saved ${suspended.checkpoint?.bytes ?? 0} bytes at a safe point and suspended: ${suspended.why?.sentence ?? ''}`)
  await stage.type(['checkpoints', 'train'])

  title(3, 'A person resumes it')
  await part('placed anew, restored, verified', () => stage.type(['resume', 'train']))
  const second = await stage.until('train', 'two fifths done', isAt(0.4))
  say(`it runs at ${second.offer ?? '?'}, ${second.progress?.done ?? 0} of ${second.progress?.total ?? 0} steps done`)

  title(4, 'A cheaper machine appears')
  const cheap = (second.offer ?? '').includes('north-1a')
    ? 'practice/north-1/north-1b/small/spot'
    : 'practice/north-1/north-1a/small/spot'
  await stage.type(['practice', 'price', cheap, '0.004'])
  await part('moved', () => stage.type(['move', 'train']))
  const third = await stage.show('train')
  if (third.offer !== cheap) throw new DemoError(`it moved to ${third.offer ?? 'nowhere'}, not to ${cheap}`)

  title(5, 'The end of it')
  const ended = await stage.until('train', 'done', ({ state }) => state === 'succeeded', 40)
  const carried = (await stage.portal(['logs', 'train'])).stdout
  const alone = await reference
  for (const line of lines(carried).slice(-3)) say(pc.dim(`  ${line}`))
  if (lines(carried).join('\n') !== lines(alone).join('\n'))
    throw new DemoError(`its log differs from the uninterrupted run's:\n${carried}\nuninterrupted:\n${alone}`)
  say(
    pc.green(`the same ${lines(alone).length} lines as the uninterrupted run: same loss, same weights to the last bit`),
  )
  await stage.type(['explain', 'train'], 0, (line) => !/ rested  /.test(line))

  title(6, 'A job that cannot be carried is refused, and runs on')
  await stage.type(['run', '-d', '--name', 'linked', '--on', 'practice', '--', jobs.program, jobs.connection])
  const steps = async () => (await stage.show('linked')).progress?.turns ?? 0
  await stage.until('linked', 'running', ({ state, progress }) => state === 'running' && (progress?.turns ?? 0) > 0)
  const refusal = await part('refused', () => stage.type(['move', 'linked', '--on', 'this-machine'], 3))
  if (!refusal.stderr.includes(jobs.value)) throw new DemoError(`the refusal does not name ${jobs.value}`)
  const before = await steps()
  await stage.until(
    'linked',
    'running on',
    ({ state, progress }) => state === 'running' && (progress?.turns ?? 0) > before,
  )
  say(pc.green(`${jobs.value} is named, and the job runs on`))
  await stage.type(['stop', '--now', 'linked'])

  title(7, 'What it took')
  for (const { part: name, took } of parts) say(`${name.padEnd(36)} ${took.padStart(7)}`)
  say(
    `${'spent on the training'.padEnd(36)} ${ended.spent.amount} ${ended.spent.currency} over ${ended.attempt ?? '?'} attempts`,
  )
}

let failed: unknown = null
const interrupted = once(process, 'SIGINT').then(() => {
  throw new DemoError('interrupted')
})
try {
  await Promise.race([play(), interrupted])
} catch (error) {
  failed = error
}
const left = await stage.clear()
say()
if (left.length > 0) {
  failed ??= new DemoError('something was left behind')
  for (const line of left) say(pc.red(`left behind: ${line}`))
} else say(pc.dim(`nothing is left behind; ${seconds(began)} in all`))
if (failed !== null) {
  process.stderr.write(
    `${pc.red('the demo failed:')} ${failed instanceof DemoError ? failed.message : String((failed as Error).stack)}\n`,
  )
  process.exit(1)
}
process.exit(0)
