import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Header } from 'tar'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createClient } from '../../src/contract/client.ts'
import type { EventView, JobView } from '../../src/contract/schemas.ts'
import { agentToken, jobView, serveMemory, token, type Served } from '../../src/control/http/testing.ts'
import { patient, Person } from '../support/portal.ts'

let person: Person
let served: Served
beforeEach(async () => {
  person = new Person()
  served = await serveMemory()
  person.served(served.server.url, token)
})
afterEach(async () => {
  await served.close()
  person.remove()
})

const add = (name: string, more: Partial<JobView> = {}): JobView => {
  const job = { ...jobView('job-1', name, ['python3', 'train.py']), ...more }
  served.memory.jobs.set(job.id, job)
  return job
}
const tell = (kind: string, more: Partial<EventView> = {}) => {
  const { events } = served.memory
  const seq = events.length + 1
  events.push({ seq, at: Date.now(), subject: 'job-1', kind, by: 'tester', why: null, facts: {}, ...more })
  served.memory.write('')
}
/** Waits until the control plane was asked for it. */
const asked = (what: string) =>
  expect.poll(() => served.logged.some(({ path }) => String(path).endsWith(`/${what}`)), patient).toBe(true)
const because = (sentence: string, code = 'ask.suspend') => ({ code, sentence, facts: {} })

describe('what makes no sense is refused with code 2 and the nearest known', () => {
  test.each([
    [['rnu', '--', 'true'], 'there is no command rnu; did you mean run?'],
    [['kill', 'nightly'], 'there is no command kill; did you mean stop?'],
    [['resume'], 'JOB is missing; see `portal resume --help`'],
    [['ps', '--jso'], 'there is no flag --jso; did you mean --json?'],
    [['ps', '--limit', 'x'], '"x" is not a whole number from 1 to 1000'],
    [['run', '--checkpoint', 'sdkk', '--', 'true'], '--checkpoint cannot be sdkk; did you mean sdk?'],
    [['run', '--memory', '5Gib', '--', 'true'], 'did you mean GiB'],
    [['run'], 'there is no command to run'],
    [['run', '--no-spot', '--spot-only', '--', 'true'], 'contradict each other'],
    [['run', '--env', '=x', '--', 'true'], '"=x" is not KEY=VALUE'],
    [['show'], 'JOB is missing'],
    [['serve', 'stauts'], 'there is no command stauts; did you mean status'],
    [['practice', 'notce'], 'did you mean notice?'],
    [['practice', 'price', 'practice', '1e9'], 'is not an amount like 0.05'],
    [['cp', 'nightly', '.'], 'is not JOB:PATH'],
  ])('portal %j', async (args, sentence) => {
    const { code, stdout, stderr } = await person.run(args)
    expect(stderr).toContain(sentence)
    expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(2)
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })
})

test('an unknown job is code 4 with the nearest known names', async () => {
  add('nightly')
  const { code, stderr } = await person.run(['show', 'nigtly'])
  expect(code).toBe(4)
  expect(stderr).toContain('there is no job nigtly')
  expect(stderr).toContain('nightly')
})

test('a wrong token, and a control plane that cannot be reached, have their codes', async () => {
  person.served(served.server.url, 'another-token-than-the-one')
  expect((await person.run(['ps'])).code).toBe(1)
  person.served('http://127.0.0.1:1', token)
  const { code, stderr } = await person.run(['ps'])
  expect(code).toBe(5)
  expect(stderr).toContain('cannot be reached')
})

test('J-RUN-1 run sends the directory, follows the log to its end, and ends with the job', async () => {
  writeFileSync(join(person.work, 'train.py'), 'print(1)')
  const running = person.start(['run', '--name', 'nightly', '--', 'python3', 'train.py', '--name', 'x'])
  await expect.poll(() => served.memory.jobs.size, patient).toBe(1)
  const [job] = [...served.memory.jobs.values()] as [JobView]
  expect(job.command).toEqual(['python3', 'train.py', '--name', 'x'])
  tell('starting', {
    why: because('placed at this-machine for 0 USD an hour: the cheapest of 3 that fit', 'place.chosen'),
    facts: { offer: 'this-machine', attempt: 1 },
  })
  served.memory.write('one\ntw')
  await running.until('one')
  served.memory.write('o\n')
  served.memory.end()
  const { code, stdout, stderr } = await running.done
  expect(stdout).toBe('one\ntwo\n')
  expect(stderr).toContain('nightly placed at this-machine')
  expect(code).toBe(0)
  // the very same files are not sent again
  served.memory.log.ended = true
  const before = served.logged.filter(({ method }) => method === 'PUT').length
  expect(before).toBe(1)
  await person.run(['run', '--', 'true'])
  expect(served.logged.filter(({ method }) => method === 'PUT')).toHaveLength(before)
})

test('J-RUN-1 Ctrl-C lets go of the job, says how to go on, and ends nothing', async () => {
  const running = person.start(['run', '--name', 'nightly', '--', 'sleep', '100'])
  served.memory.write('begun\n')
  await running.until('begun')
  running.child.kill('SIGINT')
  const { code, stderr } = await running.done
  expect(code).toBe(130)
  for (const hint of ['portal logs -f nightly', 'portal suspend nightly', 'portal stop nightly'])
    expect(stderr).toContain(hint)
  expect(served.logged.some(({ path }) => String(path).endsWith('/stop'))).toBe(false)
})

test('J-RUN-1 --detach prints its name and returns', async () => {
  const { code, stdout } = await person.run(['run', '-d', '--name', 'nightly', '--', 'true'])
  expect(stdout).toBe('nightly\n')
  expect(code).toBe(0)
})

test('a cut stream is followed on without a line lost or doubled, and told of once', async () => {
  const running = person.start(['run', '--', 'true'])
  served.memory.write('1\n')
  await running.until('1')
  served.cut()
  served.memory.write('2\n')
  await running.until('2')
  served.cut()
  served.memory.write('3\n')
  served.memory.end()
  const { stdout, stderr } = await running.done
  expect(stdout).toBe('1\n2\n3\n')
  expect(stderr.match(/lost the control plane/g)?.length).toBe(2)
  expect(stderr.match(/connected again/g)?.length).toBe(2)
})

test('J-STRICT-1 a refused suspension is code 3, every value named on stderr and in --json', async () => {
  add('nightly')
  const refused = [
    {
      path: 'state.loader.workers[2].sock',
      type: 'socket.socket',
      reason: 'an open connection belongs to this machine',
      advice: 'close it in job.on_suspend',
    },
    { path: 'state.lock', type: '_thread.lock', reason: 'a lock belongs to its process', advice: '' },
  ]
  const outcome = async (args: readonly string[]) => {
    served.logged.length = 0
    const running = person.start(['suspend', 'nightly', ...args])
    await asked('suspend')
    tell('move.begun')
    tell('move.aborted', {
      why: because('its state cannot be carried', 'move.refused'),
      facts: { kind: 'suspension', refused },
    })
    return running.done
  }
  const { code, stderr } = await outcome([])
  expect(code).toBe(3)
  expect(stderr).toContain('nightly: suspend refused, it runs on where it is')
  expect(stderr).toContain(
    'state.loader.workers[2].sock: socket.socket: an open connection belongs to this machine; close it in job.on_suspend',
  )
  expect(stderr).toContain('state.lock: _thread.lock: a lock belongs to its process\n')
  const asJson = await outcome(['--json'])
  expect(asJson.code).toBe(3)
  expect(JSON.parse(asJson.stdout)).toMatchObject({ error: { code: 'checkpoint_refused', facts: { refused } } })
})

test('a suspension and a move say in one sentence what happened, with their seconds', async () => {
  add('nightly', { checkpoint: { slot: 3, savedAt: 1, bytes: 1536, verified: true, method: 'sdk' } })
  const suspending = person.start(['suspend', 'nightly'])
  await asked('suspend')
  tell('move.begun', { at: 1000 })
  tell('move.committed', {
    at: 2000,
    facts: { kind: 'suspension', times: { probe: 1000, hold: 1100, committed: 2000 } },
  })
  tell('suspended', { at: 2200 })
  const { code, stdout } = await suspending.done
  expect(stdout).toBe('nightly is suspended, 1.5 KiB saved in 1.2 s; go on with `portal resume nightly`\n')
  expect(code).toBe(0)

  const moving = person.start(['move', 'nightly', '--on', 'practice', '--json'])
  await asked('move')
  tell('move.begun', { at: 5000 })
  tell('move.committed', {
    at: 7000,
    facts: { kind: 'move', times: { probe: 5000, target: 5100, hold: 6000, committed: 7000 } },
  })
  const moved = await moving.done
  expect(JSON.parse(moved.stdout)).toMatchObject({
    steps: [
      { step: 'probe', ms: 100 },
      { step: 'target', ms: 900 },
      { step: 'hold', ms: 1000 },
    ],
  })
  expect(moved.code).toBe(0)
})

test('a move with no better place says so and is code 1', async () => {
  add('nightly')
  const moving = person.start(['move', 'nightly'])
  await asked('move')
  tell('move.aborted', {
    why: because('no better place than this-machine at 0 USD an hour: none', 'place.no_better'),
    facts: { kind: 'move', refused: [] },
  })
  const { code, stderr } = await moving.done
  expect(stderr).toContain('nightly stays where it is: no better place than this-machine')
  expect(code).toBe(1)
})

test('hostile text from the control plane cannot steer the terminal', async () => {
  add('nightly', { command: ['\u001b[2J\u001b]0;owned\u0007', 'x'], warnings: [because('a\u001b[31mb')] })
  for (const args of [['ps'], ['show', 'nightly']]) {
    const { stdout, code } = await person.run(args)
    expect(code).toBe(0)
    expect(stdout).not.toContain('\u001b')
  }
})

test('output is plain when it is not a terminal, coloured when forced, and NO_COLOR wins', async () => {
  add('nightly')
  expect((await person.run(['ps'])).stdout).not.toContain('\u001b')
  expect((await person.run(['ps'], { FORCE_COLOR: '1' })).stdout).toContain('\u001b[')
  expect((await person.run(['ps'], { FORCE_COLOR: '1', NO_COLOR: '1' })).stdout).not.toContain('\u001b')
})

test('logs prints all or the last lines, and follows on from there', async () => {
  add('nightly')
  served.memory.write('1\n2\n3\n')
  expect((await person.run(['logs', 'nightly'])).stdout).toBe('1\n2\n3\n')
  expect((await person.run(['logs', '--tail', '2', 'nightly'])).stdout).toBe('2\n3\n')
  const following = person.start(['logs', '-f', '--tail', '1', 'nightly'])
  await following.until('3')
  served.memory.write('4\n')
  await following.until('4')
  served.memory.end()
  const { code, stdout } = await following.done
  expect(stdout).toBe('3\n4\n')
  expect(code).toBe(0)
})

test('job names are completed from the control plane, quickly and quietly', async () => {
  add('nightly')
  await expect.poll(async () => (await person.run(['__complete', 'show', 'ni'])).stdout, patient).toContain('nightly\t')
  expect((await person.run(['__complete', 'sus'])).stdout).toContain('suspend\t')
  person.served('http://127.0.0.1:1', token)
  const { code, stdout, stderr } = await person.run(['__complete', 'show', 'ni'])
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: '' })
})

test('a home directory and the root are not sent along without being named', async () => {
  const { code, stderr } = await person.run(['run', '--', 'true'], { HOME: person.work })
  expect(code).toBe(2)
  expect(stderr).toContain('is not sent along as a working directory without being named')
  expect((await person.run(['run', '-d', '--workdir', '.', '--', 'true'], { HOME: person.work })).code).toBe(0)
})

test('the script for bash completes commands, flags and names', async () => {
  add('nightly')
  const bash = `portal() { "${process.execPath}" "${resolve(import.meta.dirname, '../../src/cli/main.ts')}" "$@"; }
source <(portal completion bash)
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _portal; echo "\${COMPREPLY[*]}"; }
try portal sus; try portal show ni; try portal run --memo; try portal practice rec; try portal run -- x`
  const stdout = await new Promise<string>((settle, reject) => {
    const env = { PATH: process.env['PATH'], HOME: person.folder, PORTAL_HOME: person.home }
    execFile('bash', ['-c', bash], { env }, (error, out) => (error ? reject(error) : settle(out)))
  })
  expect(stdout.split('\n')).toEqual(['suspend', 'nightly', '--memory', 'reclaim', '', ''])
})

test('help is had by a word too', async () => {
  const { code, stdout } = await person.run(['help', 'run'])
  expect(stdout).toContain('EXAMPLES')
  expect(code).toBe(0)
})

describe('J-FILE-2 outputs are copied, and a hostile archive writes nowhere else', () => {
  const archive = (
    entries: readonly { path: string; type: 'File' | 'SymbolicLink'; linkpath?: string; text?: string }[],
  ) =>
    Buffer.concat([
      ...entries.flatMap(({ path, type, linkpath, text = '' }) => {
        const head = Buffer.alloc(512)
        new Header({ path, type, linkpath, mode: 0o644, size: text.length, mtime: new Date(0) }).encode(head)
        const body = Buffer.alloc(Math.ceil(text.length / 512) * 512)
        body.write(text)
        return [head, body]
      }),
      Buffer.alloc(1024),
    ])
  const keep = async (bytes: Buffer) => {
    add('nightly')
    const agent = createClient({ url: served.server.url, token: agentToken })
    await agent.agentOutputs({ params: { id: 'job-1.1' }, upload: bytes })
  }

  test('under the name that was asked for', async () => {
    await keep(archive([{ path: 'out/a', type: 'File', text: 'one' }]))
    expect((await person.run(['cp', 'nightly:out', 'here'])).stdout).toMatch(/^1 file, 3 B to /)
    expect(readFileSync(join(person.work, 'here/a'), 'utf8')).toBe('one')
    expect((await person.run(['cp', 'nightly:out', 'here'])).code).toBe(0)
    expect(readFileSync(join(person.work, 'here/out/a'), 'utf8')).toBe('one')
  })

  test.each([
    ['a path upwards', [{ path: 'out/../../evil', type: 'File', text: 'x' }]],
    ['an absolute path', [{ path: '/tmp/portal-evil', type: 'File', text: 'x' }]],
    [
      'a link outwards, and a file through it',
      [
        { path: 'out/link', type: 'SymbolicLink', linkpath: '../..' },
        { path: 'out/link/evil', type: 'File', text: 'x' },
      ],
    ],
  ] as const)('%s', async (_, entries) => {
    await keep(archive(entries))
    for (const path of ['out', '']) {
      await person.run(['cp', `nightly:${path}`, 'here'])
      for (const outside of ['evil', 'work/evil', '../portal-evil'])
        expect(existsSync(join(person.folder, outside))).toBe(false)
    }
  })
})

test('J-STRICT-1 a job that names no state is refused with that reason, and code 3', async () => {
  add('nightly')
  const moving = person.start(['move', 'nightly'])
  await asked('move')
  tell('move.aborted', {
    why: because('its state cannot be carried: nothing says what its state is', 'move.no_way'),
    facts: { kind: 'move', refused: [] },
  })
  const { code, stderr } = await moving.done
  expect(stderr).toContain('nightly: move refused, it runs on where it is: its state cannot be carried')
  expect(code).toBe(3)
})
