import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isAlive } from '../../src/cli/control/reach.ts'
import type { JobView } from '../../src/contract/schemas.ts'
import { patient, Person } from '../support/portal.ts'

/** The command line on a real control plane, with real agents and jobs. */
let person: Person
beforeAll(async () => {
  person = new Person()
  writeFileSync(join(person.work, 'count.py'), counting)
  await person.run(['serve', '--detach'])
})
afterAll(async () => {
  await person.end()
})

const counting = `
import time, portal
job = portal.job()
state = job.state(step=0)
for step in job.steps(state, "step", 2000):
    print("line", step, flush=True)
    job.progress(step + 1, 2000)
    time.sleep(0.01)
`
const here = ['--on', 'this-machine']
const show = async (name: string) => JSON.parse((await person.run(['show', name, '--json'])).stdout) as JobView
const until = (name: string, state: string) => expect.poll(async () => (await show(name)).state, patient).toBe(state)
const numbers = (log: string) => [...log.matchAll(/^line (\d+)$/gm)].map(([, n]) => Number(n))

describe('J-RUN-1 run ends as the job does', () => {
  test.each([
    ['a code of its own', ['sh', '-c', 'echo out; exit 7'], 7],
    ['success', ['true'], 0],
    ['a signal', ['sh', '-c', 'kill -TERM $$'], 143],
  ])('%s', async (_, words, code) => {
    const ended = await person.run(['run', ...here, '--', ...words])
    expect(ended.code).toBe(code)
    expect(ended.stderr).toMatch(/placed at this-machine/)
  })

  test('a command that does not exist: the job fails saying so', async () => {
    const { code, stderr } = await person.run(['run', ...here, '--', 'no-such-program-anywhere'])
    expect(code).not.toBe(0)
    expect(stderr).toContain('no-such-program-anywhere')
  })

  test('pinned and narrowed are said', async () => {
    expect((await person.run(['run', ...here, '--', 'true'])).stderr).toContain('pinned to this-machine')
    expect((await person.run(['run', '--on', 'practice/north-1', '--', 'true'])).stderr).toContain(
      'narrowed to practice/north-1',
    )
  })
})

test('the working directory, variables and arguments arrive as they were', async () => {
  mkdirSync(join(person.work, 'sub dir'), { recursive: true })
  writeFileSync(join(person.work, 'sub dir/data.txt'), 'carried\n')
  const { stdout } = await person.run([
    'run',
    ...here,
    '-e',
    'GREETING=hello world',
    '--',
    'sh',
    '-c',
    'cat "$1"; echo "$GREETING"',
    'sh',
    'sub dir/data.txt',
  ])
  expect(stdout).toBe('carried\nhello world\n')
})

test('what makes no sense to the control plane is code 2 with the nearest known', async () => {
  const pattern = await person.run(['run', '--on', 'practise', '--', 'true'])
  expect(pattern.code).toBe(2)
  expect(pattern.stderr).toContain('practice')
  const setting = await person.run(['run', '--set', 'tttl=5h', '--', 'true'])
  expect(setting.code).toBe(2)
  expect(setting.stderr).toContain('ttl')
  const range = await person.run(['run', '--ttl', '5 weeks', '--', 'true'])
  expect(range.code).toBe(2)
})

test('a job that is suspended while it is followed is code 75; resumed, it goes on without a line lost or doubled', async () => {
  const running = person.start(['run', ...here, '--name', 'counted', '--', 'python3', 'count.py'])
  await running.until('line 20\n')
  const suspended = await person.run(['suspend', 'counted'])
  expect(suspended.stderr).toBe('')
  expect(suspended.stdout).toMatch(/^counted is suspended, .* saved in .*; go on with `portal resume counted`\n$/)
  expect(suspended.code).toBe(0)
  const followed = await running.done
  expect(followed.code).toBe(75)
  expect(followed.stderr).toContain('counted is suspended')
  expect(followed.stderr).toContain('portal resume counted')

  const resumed = person.start(['resume', '--follow', 'counted'])
  await resumed.until('line ')
  await resumed.until(`line ${(numbers(followed.stdout).at(-1) as number) + 20}\n`)
  resumed.child.kill('SIGINT')
  const letGo = await resumed.done
  expect(letGo.code).toBe(130)
  expect(numbers(letGo.stdout)[0]).toBe((numbers(followed.stdout).at(-1) as number) + 1)
  expect((await show('counted')).state).toBe('running')

  const stopped = await person.run(['stop', 'counted'])
  expect(stopped.stdout).toMatch(/^counted is stopped/)
  const all = numbers((await person.run(['logs', 'counted'])).stdout)
  expect(all).toEqual(all.map((_, index) => index))
})

test('a control plane killed under a followed job: another is started, and no line is lost or doubled', async () => {
  const running = person.start([
    'run',
    ...here,
    '--name',
    'followed',
    '--',
    'sh',
    '-c',
    'for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do echo line $i; sleep 0.2; done',
  ])
  await running.until('line 3\n')
  const pid = person.servingPid() as number
  process.kill(pid, 'SIGKILL')
  await expect.poll(() => isAlive(pid), patient).toBe(false)
  const { code, stdout, stderr } = await running.done
  expect(numbers(stdout)).toEqual(Array.from({ length: 20 }, (_, index) => index))
  expect(stderr.match(/lost the control plane/g)).toHaveLength(1)
  expect(code).toBe(0)
})

test('J-FILE-2 outputs are copied, whole, under the name that was asked for', async () => {
  const { code, stderr } = await person.run([
    'run',
    ...here,
    '--name',
    'writer',
    '--output',
    'results',
    '--',
    'sh',
    '-c',
    'mkdir -p results/deep; echo one > results/a.txt; echo two > results/deep/b.txt',
  ])
  expect({ code, stderr }).toMatchObject({ code: 0 })
  await expect.poll(async () => (await person.run(['cp', 'writer:results', 'got'])).code, patient).toBe(0)
  expect(readFileSync(join(person.work, 'got/a.txt'), 'utf8')).toBe('one\n')
  expect(readFileSync(join(person.work, 'got/deep/b.txt'), 'utf8')).toBe('two\n')
  expect((await person.run(['cp', 'writer:results/deep/b.txt', '.'])).code).toBe(0)
  expect(readFileSync(join(person.work, 'b.txt'), 'utf8')).toBe('two\n')
  const none = await person.run(['cp', 'writer:elsewhere', '.'])
  expect(none.code).toBe(4)
  expect(none.stderr).toContain('results')
  expect(existsSync(join(person.work, 'elsewhere'))).toBe(false)
})

test('J-STRICT-1 a move that is refused names its values and is code 3; one without a better place is code 1', async () => {
  writeFileSync(
    join(person.work, 'linked.py'),
    counting
      .replace('import time, portal', 'import time, portal, socket\npair = socket.socketpair()')
      .replace('step=0', 'step=0, link={"socket": pair[0]}'),
  )
  await person.run(['run', '-d', '--name', 'linked', '--on', 'practice', '--', 'python3', 'linked.py'])
  await until('linked', 'running')
  const refused = await person.run(['move', 'linked', '--on', 'this-machine'])
  expect(refused.stderr).toContain("state.link['socket']: socket.socket: ")
  expect(refused.code).toBe(3)
  expect((await show('linked')).state).toBe('running')
  const asJson = await person.run(['move', 'linked', '--on', 'this-machine', '--json'])
  expect(JSON.parse(asJson.stdout)).toMatchObject({ error: { facts: { refused: [{ path: "state.link['socket']" }] } } })
  await person.run(['stop', '--now', 'linked'])

  await person.run(['run', '-d', '--name', 'content', ...here, '--', 'python3', 'count.py'])
  await until('content', 'running')
  const content = await person.run(['move', 'content'])
  expect(content.stderr).toContain('content stays where it is')
  expect(content.code).toBe(1)
  await person.run(['stop', '--now', 'content'])
})

test('J-FILE-2 J-FILE-3 what a job writes can be copied while it runs, while it is suspended, and when it goes on', async () => {
  writeFileSync(join(person.work, 'writes.py'), writing)
  await person.run(['run', '-d', '--name', 'writes', '--on', 'practice', '-o', 'out', '--', 'python3', 'writes.py'])
  const copied = async () => {
    const { code } = await person.run(['cp', 'writes:out/steps', 'steps.txt'])
    return code === 0 ? readFileSync(join(person.work, 'steps.txt'), 'utf8').trim().split('\n').length : 0
  }
  await expect.poll(copied, patient).toBeGreaterThan(0)
  const running = await copied()
  expect((await person.run(['suspend', 'writes'])).code).toBe(0)
  const suspended = await copied()
  expect(suspended).toBeGreaterThanOrEqual(running)
  const { checkpoint } = await show('writes')
  expect(checkpoint).not.toBe(null)
  expect((await person.run(['resume', 'writes'])).code).toBe(0)
  expect(await copied()).toBeGreaterThanOrEqual(suspended)
  await expect.poll(copied, patient).toBeGreaterThan(suspended)
  await person.run(['stop', '--now', 'writes'])
})

const writing = `
import os, time, portal
job = portal.job()
state = job.state(step=0)
os.makedirs("out", exist_ok=True)
for step in job.steps(state, "step", 100000):
    with open("out/steps", "a") as file:
        file.write(f"{step}\\n")
    time.sleep(0.02)
`

test('J-FILE-2 what a job wrote and did not declare is named when it leaves its machine', async () => {
  writeFileSync(join(person.work, 'strays.py'), writing.replaceAll('"out', '"stray'))
  await person.run(['run', '-d', '--name', 'strays', '--on', 'practice', '--', 'python3', 'strays.py'])
  await until('strays', 'running')
  await expect.poll(async () => (await show('strays')).progress?.turns ?? 0, patient).toBeGreaterThan(0)
  const moved = await person.run(['move', 'strays', '--on', 'practice/south-1'])
  expect(moved.code).toBe(0)
  expect(moved.stderr).toContain('warning: changed and not declared with --output, so not carried: stray/steps')
  await expect.poll(async () => (await show('strays')).progress?.turns ?? 0, patient).toBeGreaterThan(0)
  expect((await person.run(['suspend', 'strays'])).stderr).toContain('stray/steps')
  expect((await person.run(['show', 'strays'])).stdout).toContain('stray/steps')
  await person.run(['stop', '--now', 'strays'])
})
