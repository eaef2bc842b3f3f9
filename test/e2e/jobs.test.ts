import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { homeFiles } from '../../src/contract/home.ts'
import { Installation } from './support.ts'
import { gone, processesNaming } from '../support/processes.ts'

let portal: Installation
beforeAll(async () => void (portal = await Installation.open()))
// that nothing is left over is looked at here
afterAll(() => portal.close())

const sh = (script: string): string[] => ['sh', '-c', script]
/** A length of sleep that no other process sleeps, by which a process is found whatever became of its environment. */
let naps = 100_000
const nap = (): string => String(++naps)
const napping = (length: string) => processesNaming(length).filter(({ args }) => args.includes(length))

/** A working directory with these files. */
const work = (name: string, files: Readonly<Record<string, string>>): string => {
  const folder = join(portal.folder, name)
  mkdirSync(folder)
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text, { mode: 0o755 })
  return folder
}

test('J-RUN-1 a job runs to its end with its directory sent along; run prints its log alone and ends with its code', async () => {
  const folder = work('sent', { 'hello.sh': '#!/bin/sh\necho "hello $1"\necho worse >&2\n' })
  const ran = await portal.person.run(['run', '--workdir', folder, '--', './hello.sh', 'you'])
  expect(ran).toMatchObject({ code: 0, stdout: 'hello you\nworse\n' })
  expect((await portal.person.run(['run', '--no-workdir', '--', ...sh('exit 7')])).code).toBe(7)
  const killed = await portal.person.run(['run', '--no-workdir', '--', ...sh('kill -9 $$')])
  expect(killed.code).toBe(137)
})

test('what scripts rely on: show --json has its fields', async () => {
  const job = await portal.run({ command: sh('echo x'), name: 'fields' })
  await job.end()
  const { stdout, code } = await portal.person.run(['show', 'fields', '--json'])
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({
    name: 'fields',
    state: 'succeeded',
    attempt: 1,
    offer: 'this-machine',
    pinned: false,
    progress: expect.toSatisfy((progress) => progress === null || typeof progress === 'object'),
    spent: { currency: 'USD' },
    checkpoint: null,
  })
})

test('J-RUN-1 Ctrl-C lets go of a real job, which goes on', async () => {
  const length = nap()
  const running = portal.person.start([
    'run',
    '--no-workdir',
    '--name',
    'held-on',
    '--',
    ...sh(`echo begun; sleep ${length}; :`),
  ])
  await running.until('begun')
  running.child.kill('SIGINT')
  expect((await running.done).code).toBe(130)
  expect((await portal.client.job({ params: { ref: 'held-on' } })).state).toBe('running')
  const left = napping(length)
  expect(left.length).toBeGreaterThan(0)
  expect((await portal.person.run(['stop', '--now', 'held-on'])).code).toBe(0)
  await gone(left)
})

test('J-STOP-1 a stop asks first: what the job says in its last moment is in its log', async () => {
  const job = await portal.run({
    command: sh('trap "echo bye; exit 0" TERM; echo begun; while :; do sleep 0.05; done'),
  })
  await job.line('begun')
  await portal.client.stop({ params: { ref: job.id } })
  const { log, end } = await job.end()
  // the shell itself may tell of its child
  expect(log).toMatch(/^begun\n(Terminated\n)?bye\n$/)
  expect(end.state).toBe('stopped')
})

test('J-STOP-1 a job that ignores SIGTERM is ended after its grace, and so is all that it started', async () => {
  const [one, two] = [nap(), nap()]
  const job = await portal.run({
    command: sh(`trap "" TERM; sleep ${one} & setsid sleep ${two} & echo begun; while :; do sleep 0.05; done`),
    settings: { 'stop.grace': '1s' },
  })
  await job.line('begun')
  const all = [...napping(one), ...napping(two)]
  expect(all.length).toBeGreaterThanOrEqual(2)
  await portal.client.stop({ params: { ref: job.id } })
  expect((await job.end()).end.state).toBe('stopped')
  await gone(all, 0)
})

test('a double fork out of session and environment does not get away, neither from a stop nor from the end', async () => {
  const [stopped, over] = [nap(), nap()]
  const away = (length: string) => `(setsid env -i ${process.env['SHELL'] ?? '/bin/sh'} -c "exec sleep ${length}" &)`
  const forks = async (length: string) => {
    await expect
      .poll(() => napping(length).filter(({ args }) => args[0] === 'sleep').length, { timeout: 10_000 })
      .toBe(1)
    return napping(length)
  }
  const job = await portal.run({ command: sh(`${away(stopped)}; echo begun; sleep 1000; :`) })
  await job.line('begun')
  const first = await forks(stopped)
  await portal.client.stop({ params: { ref: job.id }, body: { now: true } })
  await job.state('stopped')
  await gone(first, 0)

  const gate = join(portal.outside, 'fork')
  const ends = await portal.run({ command: sh(`${away(over)}; while [ ! -e ${gate} ]; do sleep 0.05; done; exit 3`) })
  const second = await forks(over)
  writeFileSync(gate, '')
  expect((await ends.end()).end).toMatchObject({ state: 'failed', exit: { code: 3 } })
  await gone(second, 0)
})

test('a command that does not exist, a missing interpreter, a file that is no program: the job fails saying so', async () => {
  const folder = work('broken', { 'lost.sh': '#!/no/such/interpreter\n', plain: 'just text' })
  const cases = [
    [['run', '--no-workdir', '--', 'no-such-program-anywhere'], 'the command no-such-program-anywhere was not found'],
    [['run', '--workdir', folder, '--', './lost.sh'], 'needs the interpreter /no/such/interpreter'],
    [['run', '--workdir', folder, '--', './absent'], 'was not found in the working directory'],
  ] as const
  for (const [args, sentence] of cases) {
    const { code, stderr } = await portal.person.run(args)
    expect(stderr).toContain(sentence)
    expect(code).toBe(1)
  }
})

test('a working directory that vanished before its machine could fetch it: the job fails saying so', async () => {
  const folder = work('vanishing', { x: 'y' })
  const { code } = await portal.person.run([
    'run',
    '-d',
    '--name',
    'vanishing',
    '--on',
    'practice',
    '-w',
    folder,
    '--',
    'true',
  ])
  expect(code).toBe(0)
  const sent = homeFiles.workdirs(portal.home)
  for (const name of readdirSync(sent)) rmSync(join(sent, name))
  const following = await portal.person.run(['logs', '-f', 'vanishing'])
  const view = await portal.client.job({ params: { ref: 'vanishing' } })
  expect(view).toMatchObject({ state: 'failed', why: { sentence: expect.stringContaining('working directory') } })
  expect(following.code).toBe(0)
})

test('J-FILE-2, J-FILE-3 declared outputs are to be had while the job runs on no more, whatever directory it was on', async () => {
  const command = sh('mkdir -p results; echo 42 > results/answer; echo scrap > scrap')
  const job = await portal.run({ command, outputs: ['results'], on: 'practice', name: 'outputs' })
  expect((await job.end()).end.state).toBe('succeeded')
  const copied = await portal.person.run(['cp', 'outputs:results', '.'])
  expect(copied).toMatchObject({ code: 0 })
  expect(readFileSync(join(portal.person.work, 'results/answer'), 'utf8')).toBe('42\n')
})

test('J-FILE-1 this machine runs several jobs within its CPUs; one more waits, says why, and starts when there is room', async () => {
  const { offers } = await portal.client.offers({ query: { on: 'this-machine' } })
  const cpus = offers[0]?.cpus ?? 0
  const gate = join(portal.outside, 'room')
  const command = sh(`echo in; while [ ! -e ${gate} ]; do sleep 0.05; done`)
  const half = { command, on: 'this-machine', needs: { cpus: cpus / 2 } }
  const first = [await portal.run({ ...half, name: 'half-1' }), await portal.run({ ...half, name: 'half-2' })]
  for (const job of first) await job.line('in')
  expect(await Promise.all(first.map(async (job) => (await job.view()).state))).toEqual(['running', 'running'])
  const waiting = await portal.run({ ...half, name: 'half-3' })
  await waiting.event('queued')
  const explained = await portal.client.explain({ params: { ref: waiting.id } })
  expect(explained).toMatchObject({ state: 'queued', sentence: expect.stringContaining('this-machine') })
  // whoever waits is remembered by the next control plane too
  await portal.kill('control plane')
  await portal.serve()
  writeFileSync(gate, '')
  for (const job of [...first, waiting]) expect((await job.end()).end.state).toBe('succeeded')
})

test('a log is followed byte for byte, across a control plane that is killed and comes back', async () => {
  const lines = 400
  // bytes that are no text, a letter in two halves, and lines as fast as they come
  const script = [
    "printf 'caf\\303'; sleep 0.2; printf '\\251\\n\\377\\376\\000\\n'",
    `i=0; while [ $i -lt ${lines} ]; do echo "line $i"; i=$((i+1)); [ $((i % 20)) = 0 ] && sleep 0.05; done`,
    'printf "no end of line"',
  ].join('; ')
  const expected = Buffer.concat([
    Buffer.from('café\n'),
    Buffer.from([0xff, 0xfe, 0, 0x0a]),
    Buffer.from(Array.from({ length: lines }, (_, i) => `line ${i}\n`).join('')),
    Buffer.from('no end of line'),
  ])
  const job = await portal.run({ command: sh(script) })
  const following = portal.person.start(['logs', '-f', job.name])
  const heard: Buffer[] = []
  following.child.stdout?.on('data', (bytes: Buffer) => heard.push(bytes))
  await following.until('line 40')
  await portal.kill('control plane')
  await portal.serve()
  const { code, stderr } = await following.done
  expect(Buffer.concat(heard).equals(expected)).toBe(true)
  expect(stderr).toContain('lost the control plane')
  expect(code).toBe(0)
  const parts: Buffer[] = []
  for await (const part of await portal.client.readLog({ params: { ref: job.id } })) parts.push(part as Buffer)
  expect(Buffer.concat(parts).equals(expected)).toBe(true)
})

test('a second control plane on the same data is refused, and the first serves on', async () => {
  const second = portal.serveOnce()
  let said = ''
  second.stderr?.on('data', (bytes: Buffer) => void (said += bytes.toString()))
  const code = await new Promise((settle) => second.once('close', settle))
  expect(code).toBe(1)
  expect(said).toMatch(/a control plane \(process \d+\) runs on the data directory .* already/)
  expect((await portal.client.health()).ok).toBe(true)
})
