import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from 'tar'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FakeControl, FakeMachine, jobStart, pause, run, settings, until } from './agent-support.ts'

let control: FakeControl
let machine: FakeMachine

beforeEach(async () => {
  control = new FakeControl()
  await control.listen()
  machine = new FakeMachine(control)
})
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') {
    console.log(machine.output)
    const file = join(machine.folder, 'agent.jsonl')
    if (existsSync(file)) console.log(readFileSync(file, 'utf8').slice(-6000))
  }
  await machine.destroy()
  await control.cut()
})

const sh = (text: string): string[] => ['sh', '-c', text]

describe('a job', () => {
  test('runs to its end: log, exit, an answer to what it may promise; forgotten when nobody wants it', async () => {
    machine.start()
    control.order('job1.1', 1, run(jobStart(sh('echo one; echo two >&2; exit 3'))))
    const { exit } = await control.reported('job1.1', ({ exit }) => exit)
    expect(exit).toMatchObject({ code: 3, signal: null, how: 'exited', error: null })
    await until(() => control.log('job1.1') === 'one\ntwo\n')
    expect(control.machine).toMatchObject({ confines: 'namespace', notice: null })
    expect(control.report('job1.1')).toMatchObject({ logBytes: 8, version: 1, token: 1, phase: 'ended' })
    expect(machine.left()).toEqual([])
    control.order('job1.1', 2, { do: 'end' })
    await until(() => control.report('job1.1') === null)
    expect(existsSync(machine.attempt('job1.1'))).toBe(false)
  })

  test('J-LEASE-1 starts only with a lease', async () => {
    control.leaseLength = null
    machine.start()
    control.order('job1.1', 1, run(jobStart(sh('echo ran'))))
    await until(() => control.renewals.length > 0)
    await pause(300)
    expect(control.report('job1.1')).toMatchObject({ phase: 'preparing', exit: null })
    control.leaseLength = 60_000
    await control.reported('job1.1', ({ exit }) => exit?.code === 0)
  })

  test.each([
    ['a command that does not exist', ['no-such-command-anywhere'], /no-such-command-anywhere was not found/],
    ['an interpreter that is missing', ['./script'], /needs the interpreter \/no\/such\/python/],
    ['a file that is no program', ['./plain'], /cannot be executed/],
  ])('says why it could not start: %s', async (_, command, error) => {
    const folder = mkdtempSync(join(tmpdir(), 'portal-work-'))
    writeFileSync(join(folder, 'script'), '#!/no/such/python\n', { mode: 0o755 })
    writeFileSync(join(folder, 'plain'), 'hello\n')
    await create({ cwd: folder, file: join(folder, 'a.tar') }, ['script', 'plain'])
    const workdir = control.addWorkdir(readFileSync(join(folder, 'a.tar')))
    rmSync(folder, { recursive: true, force: true })
    machine.start()
    control.order('job1.1', 1, run(jobStart(command, { workdir })))
    const report = await control.reported('job1.1', ({ exit }) => exit)
    expect(report.exit?.how).toBe('could-not-start')
    expect(report.exit?.error).toMatch(error)
  })

  test('says that a command is longer than the machine takes, and does not try for ever', async () => {
    machine.start()
    control.order('job1.1', 1, run(jobStart(sh('echo ran'), { env: { LONG: 'x'.repeat(131_071) } })))
    const { exit } = await control.reported('job1.1', ({ exit }) => exit)
    expect(exit).toMatchObject({
      how: 'could-not-start',
      error: expect.stringMatching(/longer than this machine takes/),
    })
    expect(machine.left()).toEqual([])
  })

  test('a job that removes what says that it began is not begun again', async () => {
    machine.start()
    control.order('job1.1', 1, run(jobStart(sh('echo ran; rm ../exit; sleep 0.2'))))
    const { exit } = await control.reported('job1.1', ({ exit }) => exit)
    expect(exit?.how).toBe('ended')
    await until(() => control.log('job1.1') === 'ran\n')
    expect(machine.left()).toEqual([])
  })

  test('J-FILE-2 gets its working directory, sends its declared outputs, names what is not declared', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portal-work-'))
    mkdirSync(join(folder, 'data'))
    writeFileSync(join(folder, 'data', 'in.txt'), 'hello')
    await create({ cwd: folder, file: join(folder, 'a.tar') }, ['data'])
    const workdir = control.addWorkdir(readFileSync(join(folder, 'a.tar')))
    rmSync(folder, { recursive: true, force: true })
    control.outputsStatus = 503
    machine.start()
    const command = sh('mkdir out; cp data/in.txt out/copy.txt; echo x > scratch.txt; echo more >> data/in.txt')
    control.order('job1.1', 1, run(jobStart(command, { workdir, outputs: ['out', 'missing'] })))
    const report = await control.reported('job1.1', ({ exit }) => exit)
    expect(report.exit?.code).toBe(0)
    expect(report.undeclared).toEqual(['data/in.txt', 'scratch.txt'])
    await pause(200)
    expect(control.outputs.size).toBe(0)
    control.outputsStatus = 204
    const archive = await until(() => control.outputs.get('job1.1'))
    expect(archive.includes('out/copy.txt')).toBe(true)
    expect(archive.includes('scratch.txt')).toBe(false)
  })

  test('a working directory that came damaged is never unpacked', async () => {
    const sha256 = control.addWorkdir(Buffer.from('one thing'))
    control.workdirs.set(sha256, Buffer.from('another'))
    machine.start()
    control.order('job1.1', 1, run(jobStart(['true'], { workdir: sha256 })))
    await until(
      () =>
        existsSync(join(machine.folder, 'agent.jsonl')) &&
        /came damaged/.test(readFileSync(join(machine.folder, 'agent.jsonl'), 'utf8')),
    )
    expect(control.report('job1.1')).toMatchObject({ phase: 'preparing', exit: null })
    expect(existsSync(join(machine.attempt('job1.1'), 'work'))).toBe(false)
  })

  test('its folder and what lies in it is the owner’s alone', async () => {
    machine.start()
    control.order('job1.1', 1, run(jobStart(['sleep', '60'])))
    await control.reported('job1.1', ({ phase }) => phase === 'running')
    for (const name of ['', 'work']) expect(statSync(join(machine.attempt('job1.1'), name)).mode & 0o777).toBe(0o700)
    for (const name of ['attempt.json', 'log', 'exit', 'deadline'])
      expect(statSync(join(machine.attempt('job1.1'), name)).mode & 0o077).toBe(0)
  })
})

test('is measured: CPU and memory of all its processes, nothing before it is known', async () => {
  machine.start()
  const hog = `const kept = Buffer.alloc(150e6, 1); const { fork } = require('child_process'); if (!process.send) fork('-e', []); while (kept) {}`
  control.order('job1.1', 1, run(jobStart([process.execPath, '-e', hog])))
  const first = await control.reported('job1.1', ({ phase }) => phase === 'running')
  expect(first.sample).toBe(null)
  const { sample } = await control.reported(
    'job1.1',
    (report) => report.sample && report.sample.memoryBytes > 150e6,
    30_000,
  )
  // how much of a core it got is for its neighbours to say, too
  expect(sample?.cpu).toBeGreaterThan(0.05)
  expect(sample?.memoryPeakBytes).toBeGreaterThanOrEqual(sample?.memoryBytes ?? Infinity)
})

describe('J-STOP-1', () => {
  test('asks, waits for the grace, then ends all of it', async () => {
    machine.start()
    const start = jobStart(
      sh('trap "" TERM; (setsid sh -c "trap \\"\\" TERM; sleep 600; :" &); echo up; while :; do sleep 1; done'),
    )
    control.order('job1.1', 1, run(start))
    await until(() => control.log('job1.1').includes('up'))
    control.order('job1.1', 2, { do: 'stop', grace: 400, save: false, safePointWait: 1000, lastSlot: 0 })
    const from = Date.now()
    const { exit } = await control.reported('job1.1', ({ exit }) => exit)
    expect(Date.now() - from).toBeGreaterThan(380)
    expect(exit).toMatchObject({ how: 'stopped', signal: 'SIGKILL' })
    expect(machine.left()).toEqual([])
  })

  test('a job that ends itself when asked is stopped with its own code', async () => {
    machine.start()
    control.order('job1.1', 1, run(jobStart(sh('trap "exit 9" TERM; echo up; while :; do sleep 0.05; done'))))
    await until(() => control.log('job1.1').includes('up'))
    control.order('job1.1', 2, { do: 'stop', grace: 30_000, save: true, safePointWait: 1000, lastSlot: 0 })
    const { exit } = await control.reported('job1.1', ({ exit }) => exit)
    expect(exit).toMatchObject({ how: 'stopped', code: 9 })
  })
})

describe('orders', () => {
  test('an older one is refused, also after the agent was killed', async () => {
    machine.start()
    control.order('job1.1', 5, run(jobStart(['sleep', '60'])))
    await control.reported('job1.1', ({ phase }) => phase === 'running')
    control.order('job1.1', 4, { do: 'end' })
    await machine.restart()
    await until(() => control.connections === 2)
    await pause(300)
    expect(control.report('job1.1')).toMatchObject({ phase: 'running', version: 5 })
    control.order('job1.1', 6, { do: 'end' })
    await until(() => control.report('job1.1') === null)
    expect(machine.left()).toEqual([])
  })

  test('superseded ends it, whatever its order says', async () => {
    machine.start()
    control.order('job1.1', 1, run(jobStart(['sleep', '60'])))
    await control.reported('job1.1', ({ phase }) => phase === 'running')
    control.send({ t: 'superseded', attempt: 'job1.1' })
    const { exit } = await control.reported('job1.1', ({ exit }) => exit)
    expect(exit?.how).toBe('superseded')
    expect(machine.left()).toEqual([])
  })

  test('many attempts side by side', async () => {
    machine.start()
    for (let token = 1; token <= 8; token++)
      control.order(
        `job${token}.1`,
        1,
        run(jobStart(sh(`echo ${token}; sleep 0.2; exit ${token}`), { jobId: `job${token}` })),
      )
    for (let token = 1; token <= 8; token++)
      expect((await control.reported(`job${token}.1`, ({ exit }) => exit)).exit?.code).toBe(token)
    for (let token = 1; token <= 8; token++) await until(() => control.log(`job${token}.1`) === `${token}\n`)
  })
})

describe('J-LEASE-2', () => {
  test('a job whose lease is not renewed ends at its deadline, counted from when the agent asked', async () => {
    control.leaseLength = 2500
    machine.start()
    const start = jobStart(sh('trap "" TERM; echo up; while :; do sleep 1; done'), {
      settings: settings({ leaseLength: 2500, leaseRenew: 500 }),
    })
    control.order('job1.1', 1, run(start))
    await until(() => control.log('job1.1').includes('up'))
    await pause(3500)
    expect(control.report('job1.1')).toMatchObject({ phase: 'running' })
    control.leaseLength = null
    const from = Date.now()
    const { exit } = await control.reported('job1.1', ({ exit }) => exit)
    expect(exit?.how).toBe('deadline')
    expect(Date.now() - from).toBeLessThan(4000)
    expect(machine.left()).toEqual([])
  })

  test('also with the agent dead, and the next agent tells it', async () => {
    control.leaseLength = 2500
    machine.start()
    const start = jobStart(sh('(setsid sleep 600 &); sleep 600'), {
      settings: settings({ leaseLength: 2500, leaseRenew: 800 }),
    })
    control.order('job1.1', 1, run(start))
    await control.reported('job1.1', ({ phase }) => phase === 'running')
    await machine.kill()
    await until(() => machine.left().length === 0, 5000)
    machine.start()
    expect((await control.reported('job1.1', ({ exit }) => exit)).exit?.how).toBe('deadline')
  })

  test('detached: it runs on with no lease at all', async () => {
    control.leaseLength = null
    machine.start()
    control.order(
      'job1.1',
      1,
      run(jobStart(sh('sleep 1.2; exit 4'), { settings: settings({ leaseLength: 'detached' }) })),
    )
    expect((await control.reported('job1.1', ({ exit }) => exit)).exit?.code).toBe(4)
    expect(control.renewals).toEqual([])
  })
})

describe('the log', () => {
  test('is neither lost nor doubled, though the agent and the connection are killed over and over', async () => {
    machine.start()
    control.order(
      'job1.1',
      1,
      run(jobStart(sh('i=0; while [ $i -lt 600 ]; do echo line $i; i=$((i+1)); sleep 0.005; done'))),
    )
    for (let round = 0; round < 4; round++) {
      await pause(350)
      if (round % 2 === 0) {
        await machine.restart()
      } else {
        await control.cut()
        await pause(100)
        await control.listen()
      }
    }
    await control.reported('job1.1', ({ exit }) => exit, 20_000)
    const all = Array.from({ length: 600 }, (_, i) => `line ${i}\n`).join('')
    await until(() => control.log('job1.1').length === all.length)
    expect(control.log('job1.1')).toBe(all)
  })

  test('a large one is shipped whole; what is acknowledged is not sent again', async () => {
    machine.start()
    control.order('job1.1', 1, run(jobStart(sh('seq 1 600000; echo end; sleep 60'))))
    await until(() => control.log('job1.1').endsWith('end\n'))
    const { length } = control.log('job1.1')
    control.offsets.length = 0
    await machine.restart()
    await until(() => control.connections === 2 && control.offsets.length > 0)
    await pause(300)
    expect(control.log('job1.1').length).toBe(length)
    // a new agent does not know what is there: one piece tells it
    expect(control.offsets).toEqual([0])
  })

  test('a new line arrives within 100 ms at 1,000 lines a second', async () => {
    machine.start()
    const writer = `const start = Date.now(); let n = 0
      const timer = setInterval(() => { const due = Date.now() - start; while (n < due && n < 2000) { n++; process.stdout.write(Date.now() + '\\n') } if (n >= 2000) clearInterval(timer) }, 5)`
    const delays: number[] = []
    let seen = 0
    control.order('job1.1', 1, run(jobStart([process.execPath, '-e', writer])))
    const watching = setInterval(() => {
      const now = Date.now()
      const lines = control.log('job1.1').split('\n').slice(0, -1)
      for (const line of lines.slice(seen)) delays.push(now - Number(line))
      seen = lines.length
    }, 1)
    await until(() => seen === 2000, 20_000)
    clearInterval(watching)
    delays.sort((a, b) => a - b)
    console.log(`log delay: median ${delays[1000]} ms, 99% ${delays[1980]} ms`)
    expect(delays[1000]).toBeLessThan(40)
  })
})

describe('kill -9 of the agent', () => {
  test.each([0, 20, 60, 120, 200, 300, 450])('%i ms after the order: the job runs once, and is told', async (delay) => {
    machine.start()
    control.order('job1.1', 1, run(jobStart(sh('echo ran >> ../ran; sleep 0.15; exit 6'))))
    await until(() => control.connections === 1)
    await pause(delay)
    await machine.restart()
    const { exit } = await control.reported('job1.1', ({ exit }) => exit)
    expect(exit).toMatchObject({ how: 'exited', code: 6 })
    expect(readFileSync(join(machine.attempt('job1.1'), 'ran'), 'utf8')).toBe('ran\n')
    expect(machine.left()).toEqual([])
  })
})

describe('given up while it starts', () => {
  test.each([0, 2, 4, 6, 8, 10, 13, 17, 25, 40])(
    '%i ms after the order to run: nothing of it is left',
    async (delay) => {
      machine.start()
      await until(() => control.connections === 1)
      control.order('job1.1', 1, run(jobStart(sh('(setsid sleep 600 &); sleep 600'))))
      await pause(delay)
      control.order('job1.1', 2, { do: 'end' })
      await until(() => control.report('job1.1') === null && !existsSync(machine.attempt('job1.1')))
      await pause(50)
      expect(machine.left()).toEqual([])
    },
  )
})

describe('kill -9 of', () => {
  test.each(['the keeper', 'the job'])('%s is told, and nothing is left', async (which) => {
    machine.start()
    control.order('job1.1', 1, run(jobStart(sh('(setsid sleep 600 &); echo up; sleep 601; :'))))
    await until(() => control.log('job1.1').includes('up'))
    const keeper = Number(readFileSync(join(machine.attempt('job1.1'), 'keeper'), 'utf8').split(' ')[1])
    const job = machine.left().find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sh\0-c\0(setsid'))
    process.kill(which === 'the job' ? Number(job) : keeper, 'SIGKILL')
    const { exit } = await control.reported('job1.1', (report) => report.exit)
    expect(exit).toMatchObject(which === 'the job' ? { how: 'exited', signal: 'SIGKILL' } : { how: 'ended' })
    await until(() => machine.left().length === 0)
  })
})

test('a full disk on the machine: orders are taken on when there is room again', async ({ skip }) => {
  const attempts = join(machine.folder, 'attempts')
  mkdirSync(attempts, { mode: 0o700 })
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=700', 'tmpfs', attempts]).status !== 0)
    skip('no right to mount a small disk here')
  try {
    const filler = join(attempts, 'filler')
    spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k'])
    machine.start()
    control.order('job1.1', 1, run(jobStart(sh('echo ran; exit 5'))))
    const log = join(machine.folder, 'agent.jsonl')
    await until(() => existsSync(log) && /ENOSPC/.test(readFileSync(log, 'utf8')))
    rmSync(filler)
    expect((await control.reported('job1.1', ({ exit }) => exit)).exit?.code).toBe(5)
    await until(() => control.log('job1.1') === 'ran\n')
    // it did not fill its own log with that
    expect(statSync(log).size).toBeLessThan(50_000)
  } finally {
    await machine.kill()
    spawnSync('umount', ['-l', attempts])
  }
})

test('J-LEASE-1 an agent that never reaches its control plane ends by itself', async () => {
  await machine.destroy()
  await control.cut()
  machine = new FakeMachine(control, { checkin: 1500 })
  machine.start()
  expect(await machine.ended).toBe(0)
})
