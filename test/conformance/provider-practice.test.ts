import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, assert, beforeEach, describe, expect, test, vi } from 'vitest'
import { money } from '../../src/core/money/index.ts'
import { hour, minute, second } from '../../src/core/time/index.ts'
import { interruptionsBetween } from '../../src/providers/practice/cloud/prices.ts'
import { openPractice, type Practice, type PracticeMachine } from '../../src/providers/practice/index.ts'
import { identityOf, isAlive, type ProcessIdentity } from '../../src/providers/processes.ts'
import type { StartRequest } from '../../src/providers/port.ts'
import { agentEntry, endStrays, practiceEntry, processesOf, startRequest } from './provider/harness.ts'

const spot = 'practice/north-1/north-1a/small/spot'
const onDemand = 'practice/north-1/north-1a/small/on-demand'

let home: string
let practice: Practice

const open = (settings: Record<string, unknown> = {}): Promise<Practice> =>
  openPractice({ home, agentEntry, practiceEntry, settings: { bootDelay: 10, ...settings } })

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'portal-practice-'))
  practice = await open()
})
afterEach(async () => {
  await practice.shutdown()
  const left = processesOf(home)
  await endStrays(home)
  await rm(home, { recursive: true, force: true })
  if (left.length > 0) throw new Error(`a cloud that was shut down left processes behind: ${left.join(', ')}`)
})

async function request(offerId: string, rowId: string): Promise<StartRequest> {
  const offer = (await practice.offers(startRequest.needs)).find(({ id }) => id === offerId)
  if (offer === undefined) throw new Error(`no offer ${offerId}`)
  return { ...startRequest, rowId, offer }
}
const folderOf = (machineId: string): string => join(home, 'practice', 'machines', machineId)
const read = async (machineId: string, file: string): Promise<string> =>
  readFile(join(folderOf(machineId), file), 'utf8')
const metadata = async (machineId: string): Promise<unknown> => JSON.parse(await read(machineId, 'metadata.json'))
const mode = async (path: string): Promise<number> => (await stat(path)).mode & 0o777
const seen = async (machineId: string): Promise<PracticeMachine | undefined> =>
  (await practice.listMachines()).find(({ id }) => id === machineId)

/** How often the machine's agent started: a line each. */
const starts = async (machineId: string): Promise<number> =>
  (await read(machineId, 'started').catch(() => '')).split('\n').length - 1

/** Starts a machine and waits until its agent and the double-forked child of it run. */
async function running(offerId: string, rowId: string): Promise<string> {
  const { machineId } = await practice.start(await request(offerId, rowId))
  await vi.waitFor(() => read(machineId, 'stray.pid'), { timeout: 10_000, interval: 20 })
  await vi.waitFor(async () => expect(await starts(machineId)).toBe(1), { timeout: 10_000, interval: 20 })
  return machineId
}

const expectTerminal = (machineId: string, state: string, timeout = 5 * second) =>
  vi.waitFor(async () => expect(await practice.observe(machineId)).toMatchObject({ is: 'terminal', state }), {
    timeout,
    interval: 20,
  })

async function cloudProcess(): Promise<ProcessIdentity> {
  const { pid } = JSON.parse(await readFile(join(home, 'practice', 'cloud.json'), 'utf8'))
  const identity = identityOf(pid)
  if (identity === null) throw new Error('no cloud runs')
  return identity
}

async function killCloud(): Promise<void> {
  const cloud = await cloudProcess()
  process.kill(cloud.pid, 'SIGKILL')
  await vi.waitFor(() => expect(isAlive(cloud)).toBe(false))
}

describe('a machine', () => {
  test('is a folder of its own that nobody else can read, with a home and no notice', async () => {
    const machineId = await running(spot, 'job1.1')
    expect(await mode(folderOf(machineId))).toBe(0o700)
    expect(await mode(join(folderOf(machineId), 'bootstrap.json'))).toBe(0o600)
    expect(JSON.parse(await read(machineId, 'bootstrap.json'))).toEqual(startRequest.bootstrap)
    expect(await metadata(machineId)).toEqual({ notice: null })
    const environment = await read(machineId, 'environment.json').then(JSON.parse)
    expect(environment.HOME).toBe(join(folderOf(machineId), 'home'))
    expect(environment.TMPDIR).toBe(join(folderOf(machineId), 'tmp'))
    expect(Object.keys(environment).filter((name) => name.startsWith('PORTAL_'))).toEqual(['PORTAL_PRACTICE_MACHINE'])
  })

  test('is ended with every process of it, a double fork in a session of its own included', async () => {
    const machineId = await running(spot, 'job1.1')
    const other = await running(spot, 'job2.1')
    expect(processesOf(folderOf(machineId)).length).toBeGreaterThan(2)
    await practice.end(machineId)
    expect(processesOf(folderOf(machineId))).toEqual([])
    expect(await practice.observe(machineId)).toMatchObject({ is: 'terminal', state: 'ended' })
    expect(processesOf(folderOf(other)).length).toBeGreaterThan(2)
    // its agent's token is gone with it
    await expect(read(machineId, 'bootstrap.json')).rejects.toThrow('ENOENT')
  })

  test('outlives its agent, which is started again; an agent that ends by itself turns it off', async () => {
    const machineId = await running(spot, 'job1.1')
    await writeFile(join(folderOf(machineId), 'crash'), '')
    await vi.waitFor(async () => expect(await starts(machineId)).toBe(2), { timeout: 5000, interval: 20 })
    expect(await practice.observe(machineId)).toMatchObject({ is: 'alive' })
    await writeFile(join(folderOf(machineId), 'halt'), '')
    await expectTerminal(machineId, 'halted')
    expect(processesOf(folderOf(machineId))).toEqual([])
  })

  test('J-LEASE-1 does not live past its hard stop, which can be moved', async () => {
    const wanted = { ...(await request(spot, 'job1.1')), hardStopAfter: 1500 }
    const { machineId } = await practice.start(wanted)
    await practice.renew?.(machineId, 2500)
    const renewed = Date.now()
    await expectTerminal(machineId, 'hard stop', 10_000)
    expect(Date.now() - renewed).toBeGreaterThan(2300)
  })

  test('J-LIFE-1 does not live past a fixed lifetime', async () => {
    const machineId = await running(onDemand, 'job1.1')
    await practice.setLifetime(onDemand, 100)
    await expectTerminal(machineId, 'lifetime')
    const west = (await practice.offers(startRequest.needs)).filter(({ region }) => region === 'west-1')
    expect(new Set(west.map(({ lifetime }) => lifetime))).toEqual(new Set([24 * hour]))
  })

  test('its folder goes a while after it', async () => {
    practice = await open({ keepFolders: 200 })
    const machineId = await running(spot, 'job1.1')
    await practice.end(machineId)
    await vi.waitFor(async () => expect(await readdir(join(home, 'practice', 'machines'))).toEqual([]), {
      timeout: 5000,
    })
    expect(await practice.observe(machineId)).toMatchObject({ is: 'terminal' })
  })
})

describe('a notice', () => {
  test('is told to the machine first, and at its end the machine is gone', async () => {
    const machineId = await running(spot, 'job1.1')
    const before = Date.now()
    const [told] = await practice.notice(spot, 800)
    expect(told?.id).toBe(machineId)
    const { notice } = (await metadata(machineId)) as { notice: { endsAt: number } }
    expect(notice.endsAt - before).toBeGreaterThanOrEqual(800)
    expect(notice.endsAt - before).toBeLessThan(1500)
    expect(await practice.observe(machineId)).toMatchObject({ is: 'alive' })
    await expectTerminal(machineId, 'reclaimed')
    expect(Date.now()).toBeGreaterThanOrEqual(notice.endsAt)
    expect(processesOf(folderOf(machineId))).toEqual([])
  })

  test('is as long as the pool says, where nobody says otherwise', async () => {
    const south = 'practice/south-1/south-1a/small/spot'
    const machines = [await running(spot, 'job1.1'), await running(south, 'job2.1')]
    await practice.notice('north-1', null)
    await practice.notice('job2.1', null)
    const lengths = await Promise.all(
      machines.map(async (id) => {
        const machine = await seen(id)
        return machine?.notice ? machine.notice.endsAt - machine.notice.givenAt : null
      }),
    )
    expect(lengths).toEqual([120 * second, 30 * second])
    await practice.setNoticeLength('practice/south-1', 7 * second)
    expect((await request(south, 'x')).offer.notice).toBe(7 * second)
    expect((await request('practice/south-1/south-1a/small/on-demand', 'x')).offer.notice).toBeNull()
  })

  test('can be taken back', async () => {
    const machineId = await running(spot, 'job1.1')
    await practice.notice(machineId, 700)
    expect((await practice.withdrawNotice(machineId)).map(({ id }) => id)).toEqual([machineId])
    expect(await metadata(machineId)).toEqual({ notice: null })
    await new Promise((resolve) => setTimeout(resolve, 1100))
    expect(await practice.observe(machineId)).toMatchObject({ is: 'alive' })
  })

  test('comes by itself where the market takes machines, at the rate that was set', async () => {
    practice = await open({ interruptionsPerHour: 12 })
    const machineId = await running(spot, 'job1.1')
    const other = await running(onDemand, 'job2.1')
    expect((await seen(machineId))?.notice).toBeNull()
    const pool = { seed: 1, pool: spot.slice('practice/'.length), perHour: 12 }
    const [next] = interruptionsBetween(pool, Date.now() + minute, Date.now() + 20 * minute)
    // the jump itself takes nothing; the moment that passes does
    await practice.setClock((next ?? 0) - Date.now() - 600)
    expect((await seen(machineId))?.notice).toBeNull()
    await vi.waitFor(async () => expect((await seen(machineId))?.notice).not.toBeNull(), { timeout: 5000 })
    expect((await seen(other))?.notice).toBeNull()
  })
})

describe('what a provider refuses', () => {
  test('no capacity, until a machine ends or somebody adds some', async () => {
    await practice.setCapacity(spot, 1)
    const machineId = await running(spot, 'job1.1')
    const another = await request(spot, 'job2.1')
    await expect(practice.quote(another.offer)).rejects.toMatchObject({ kind: 'capacity' })
    await expect(practice.start(another)).rejects.toMatchObject({ kind: 'capacity' })
    // the same row as before is the same machine, capacity or not
    expect(await practice.start(await request(spot, 'job1.1'))).toEqual({ machineId })
    await practice.end(machineId)
    await practice.start(another)
    await practice.setCapacity('north-1', null)
    await practice.start(await request(spot, 'job3.1'))
  })

  test('no quota, counted in CPUs over the region', async () => {
    await practice.setQuota('north-1', 2)
    await practice.start(await request('practice/north-1/north-1b/small/spot', 'job1.1'))
    await expect(
      practice.start(await request('practice/north-1/north-1a/medium/spot', 'job2.1')),
    ).rejects.toMatchObject({
      kind: 'quota',
      message: 'north-1: 1 of 2 CPUs of the quota are in use, 2 more are needed',
    })
    await practice.start(await request(onDemand, 'job3.1'))
    await practice.start(await request('practice/west-1/west-1a/medium/spot', 'job4.1'))
  })

  test('sixteen starts for the last machine: one has it', async () => {
    await practice.setCapacity(spot, 1)
    const wanted = await Promise.all(Array.from({ length: 16 }, (_, n) => request(spot, `job${n}.1`)))
    const results = await Promise.allSettled(wanted.map((one) => practice.start(one)))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect((await practice.list()).filter(({ state }) => state !== 'ended')).toHaveLength(1)
  })
})

describe('the market', () => {
  test('the same seed, the same prices; another seed, others', async () => {
    const prices = async (settings: Record<string, unknown>) =>
      (await (await open(settings)).offers(startRequest.needs)).map(({ price }) => price.micros)
    const [first, again, other] = [await prices({ seed: 5 }), await prices({ seed: 5 }), await prices({ seed: 6 })]
    expect(again).toEqual(first)
    expect(other).not.toEqual(first)
  })

  test('looking at it starts no process', async () => {
    await practice.offers(startRequest.needs)
    await practice.quote((await request(spot, 'x')).offer)
    await practice.market()
    expect(await practice.list()).toEqual([])
    expect(processesOf(home)).toEqual([])
  })

  test('a price that somebody set, for a while or until it is cleared, and what a start does with it', async () => {
    const agreed = await request(spot, 'job1.1')
    expect(await practice.setPrice(spot, money(9), null)).toEqual([spot.slice('practice/'.length)])
    expect(await practice.quote(agreed.offer)).toEqual({ price: money(9) })
    await expect(practice.start(agreed)).rejects.toMatchObject({ kind: 'price_changed' })
    await practice.clearPrice(spot)
    expect((await practice.quote(agreed.offer)).price).toEqual(agreed.offer.price)
    await practice.setPrice('practice', money(0.5), 300)
    expect(new Set((await practice.offers(startRequest.needs)).map(({ price }) => price.micros))).toEqual(
      new Set([500_000]),
    )
    await vi.waitFor(async () => expect((await request(spot, 'x')).offer.price).toEqual(agreed.offer.price))
  })

  test('a cheaper start than agreed is welcome', async () => {
    const agreed = await request(spot, 'job1.1')
    await practice.setPrice(spot, money(0.0001), null)
    expect(await practice.start(agreed)).toHaveProperty('machineId')
  })

  test('a trace in place of the seed, and its refusal by line', async () => {
    const trace = join(home, 'trace.csv')
    await writeFile(trace, `time,pool,price\n+0,${spot.slice('practice/'.length)},0.0123\n`)
    practice = await open({ trace })
    expect((await request(spot, 'x')).offer.price).toEqual(money(0.0123))
    await practice.start(await request(spot, 'job1.1'))
    expect((await request(spot, 'x')).offer.price).toEqual(money(0.0123))
    // one that went bad closes the market; machines can still be seen and ended
    await writeFile(trace, 'time,pool,price\n+0,nowhere,1\n')
    practice = await open({ trace })
    // one after the other: a refusal that nobody awaits yet counts as unhandled
    for (const ask of [() => practice.offers(startRequest.needs), () => practice.market()])
      await expect(ask()).rejects.toMatchObject({
        kind: 'unreachable',
        message: expect.stringContaining('line 2: there is no pool "nowhere"'),
      })
    const [machine] = await practice.list()
    await practice.end(machine?.machineId ?? '')
    expect(await practice.list()).toMatchObject([{ state: 'ended' }])
  })

  test('its clock moves prices, not machines', async () => {
    const machineId = await running(spot, 'job1.1')
    const before = (await practice.market()).rows.map(({ price }) => price.micros)
    await practice.setClock(30 * 24 * hour)
    const after = await practice.market()
    expect(after.rows.map(({ price }) => price.micros)).not.toEqual(before)
    expect(after.now - Date.now()).toBeGreaterThan(29 * 24 * hour)
    expect(await practice.observe(machineId)).toMatchObject({ is: 'alive' })
  })

  test('reset: all as at first, and machines stay', async () => {
    const before = await practice.market()
    const machineId = await running(spot, 'job1.1')
    await practice.setPrice('practice', money(3), null)
    await practice.setCapacity('north-1', 0)
    await practice.setQuota('north-1', 1)
    await practice.setLifetime('west-1', null)
    await practice.setNoticeLength('north-1', null)
    await practice.setClock(hour)
    await practice.reset()
    const after = await practice.market()
    const unused = (rows: typeof after.rows) => rows.map(({ used: _used, ...row }) => row)
    expect(unused(after.rows)).toEqual(unused(before.rows))
    expect(after.quotas.map(({ cpus }) => cpus)).toEqual(before.quotas.map(({ cpus }) => cpus))
    expect(await practice.observe(machineId)).toMatchObject({ is: 'alive' })
  })

  test('what is not known is refused with the nearest that is', async () => {
    const machineId = await running(spot, 'job1.1')
    const refusal = (call: Promise<unknown>) =>
      call.then(
        () => 'nothing',
        (error: Error) => error.message,
      )
    expect(await refusal(practice.setCapacity('practice/north-1/north-1a/smal/spot', 1))).toContain(
      'the nearest is north-1/north-1a/small/spot',
    )
    expect(await refusal(practice.setQuota('nort-1', 1))).toContain('the nearest is north-1')
    expect(await refusal(practice.notice('job1.2', null))).toContain('the nearest is job1.1')
    expect(await refusal(practice.reclaim(`${machineId.slice(0, -1)}!`))).toContain(`the nearest is ${machineId}`)
    expect(await refusal(practice.setPrice(spot, money(1, 'EUR'), null))).toContain('in USD, not in EUR')
    expect(await refusal(practice.setCapacity(spot, -1))).toContain('a whole number from 0 on')
    await practice.end(machineId)
    expect(await refusal(practice.notice(machineId, null))).toContain('has ended')
    await expect(open({ seeed: 1 })).rejects.toThrow('there is no setting seeed; did you mean seed?')
    await expect(open({ seed: 'one' })).rejects.toThrow('seed is "one"; it wants an integer')
  })
})

describe('the cloud', () => {
  test('two adapters that race to start it: one cloud', async () => {
    const others = await Promise.all(Array.from({ length: 3 }, () => open()))
    const wanted = await request(spot, 'job1.1')
    const answers = await Promise.all([practice, ...others].map((one) => one.start(wanted)))
    expect(new Set(answers.map(({ machineId }) => machineId)).size).toBe(1)
    await vi.waitFor(() => expect(processesOf(home).filter(isCloud)).toHaveLength(1), { timeout: 5000 })
  })

  test('J-SAFE-3 killed and started again: machines run on and are found, notices and refusals still hold', async () => {
    const machineId = await running(spot, 'job1.1')
    await practice.setCapacity(spot, 1)
    await practice.notice(machineId, 1500)
    await killCloud()
    expect(processesOf(folderOf(machineId)).length).toBeGreaterThan(2)
    const again = await open()
    expect(await again.observe(machineId)).toEqual({ is: 'alive', machineId })
    await expect(again.start(await request(spot, 'job2.1'))).rejects.toMatchObject({ kind: 'capacity' })
    expect(await again.start(await request(spot, 'job1.1'))).toEqual({ machineId })
    expect(await starts(machineId)).toBe(1)
    await expectTerminal(machineId, 'reclaimed')
    expect(processesOf(folderOf(machineId))).toEqual([])
  })

  test('killed, and the machine killed meanwhile: it has ended', async () => {
    const machineId = await running(spot, 'job1.1')
    await killCloud()
    for (const pid of processesOf(folderOf(machineId))) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // it ended with another
      }
    }
    await expectTerminal(machineId, 'halted')
    expect(processesOf(folderOf(machineId))).toEqual([])
  })

  test('killed at any moment of a boot: the machine boots once', async () => {
    practice = await open({ bootDelay: 60 })
    const machines: string[] = []
    for (const wait of [0, 40, 60, 70, 80, 100]) {
      const { machineId } = await practice.start(await request(spot, `job${wait}.1`))
      machines.push(machineId)
      await new Promise((resolve) => setTimeout(resolve, wait))
      await killCloud()
    }
    await practice.market()
    await practice.list()
    for (const machineId of machines) {
      await vi.waitFor(
        async () => {
          const { is } = await practice.observe(machineId)
          expect(is === 'terminal' || (await starts(machineId)) === 1).toBe(true)
        },
        { timeout: 10_000, interval: 50 },
      )
      expect(await starts(machineId)).toBeLessThanOrEqual(1)
    }
  }, 30_000)

  test('killed again and again amid starts and ends: no machine is lost, doubled or left running', async () => {
    const seed = Math.floor(Math.random() * 1e9)
    let drawn = seed
    const draw = (below: number): number => {
      drawn = (Math.imul(drawn, 1664525) + 1013904223) >>> 0
      return drawn % below
    }
    await practice.setCapacity(spot, null)
    const wanted = await request(spot, 'x')
    const started = new Map<string, string>()
    for (let round = 0; round < 8; round++) {
      const asked = Array.from({ length: 3 }, async (_, n) => {
        const rowId = `job${round}.${n}`
        const { machineId } = await practice.start({ ...wanted, rowId })
        started.set(rowId, machineId)
        if (n === 0) await practice.end(machineId)
      })
      await new Promise((resolve) => setTimeout(resolve, draw(250)))
      await killCloud().catch(() => {})
      await Promise.all(asked)
    }
    const listed = await practice.list()
    const machines = await Promise.all(
      listed.map(async ({ machineId, rowId, state }) => {
        const alive = processesOf(folderOf(machineId)).length > 0
        return { rowId, machineId, state, agents: await starts(machineId), leftRunning: state === 'ended' && alive }
      }),
    )
    const told = `seed ${seed}: ${JSON.stringify(machines)}`
    assert.deepEqual(new Map(listed.map(({ rowId, machineId }) => [rowId, machineId])), started, told)
    assert.equal(listed.length, started.size, told)
    assert(
      machines.every(({ agents, leftRunning }) => agents <= 1 && !leftRunning),
      told,
    )
    assert(
      machines.every(({ rowId, state }) => !rowId?.endsWith('.0') || state === 'ended'),
      told,
    )
    const folders = await readdir(join(home, 'practice', 'machines'))
    assert(
      folders.every((name) => listed.some(({ machineId }) => machineId === name)),
      told,
    )
  })

  test('does not open over a state that it cannot read, and says which', async () => {
    await running(spot, 'job1.1')
    await practice.shutdown()
    const file = join(home, 'practice', 'state.json')
    const kept = await readFile(file, 'utf8')
    for (const damaged of [kept.slice(0, -9), '{"format":2}']) {
      await writeFile(file, damaged)
      await expect(practice.offers(startRequest.needs)).rejects.toMatchObject({
        kind: 'unreachable',
        message: expect.stringContaining(`${file} is damaged`),
      })
      await expect(practice.end('m-1')).rejects.toMatchObject({
        kind: 'unreachable',
        message: expect.stringContaining(`${file} is damaged`),
      })
      expect(await readFile(file, 'utf8')).toBe(damaged)
    }
    await writeFile(file, kept)
    expect(await practice.list()).toMatchObject([{ rowId: 'job1.1', state: 'ended' }])
  })

  test('answers only who knows its token', async () => {
    await running(spot, 'job1.1')
    const { port, token } = JSON.parse(await readFile(join(home, 'practice', 'cloud.json'), 'utf8'))
    expect(await mode(join(home, 'practice', 'cloud.json'))).toBe(0o600)
    const ask = (authorization: string, path = '/list', body = '[]') =>
      new Promise<number | undefined>((resolve, reject) => {
        const call = httpRequest(
          { host: '127.0.0.1', port, path, method: 'POST', headers: { authorization } },
          (answer) => {
            answer.resume()
            resolve(answer.statusCode)
          },
        )
        call.on('error', reject)
        call.end(body)
      })
    expect(await ask('')).toBe(401)
    expect(await ask('Bearer wrong')).toBe(401)
    expect(await ask(`Bearer ${token}`)).toBe(200)
    expect(await ask(`Bearer ${token}`, '/look')).toBe(404)
    expect(await ask(`Bearer ${token}`, '/constructor')).toBe(404)
    expect(await ask(`Bearer ${token}`, '/list', '{')).toBe(500)
    expect(await ask(`Bearer ${token}`, '/list', '{}')).toBe(400)
  })

  test('ends by itself when it has neither machines nor calls for a while, and comes back when needed', async () => {
    practice = await open({ idleExit: 300 })
    const machineId = await running(spot, 'job1.1')
    const first = await cloudProcess()
    await practice.end(machineId)
    await vi.waitFor(() => expect(isAlive(first)).toBe(false), { timeout: 5000 })
    expect(await practice.list()).toMatchObject([{ machineId, rowId: 'job1.1', state: 'ended' }])
    await running(spot, 'job2.1')
    expect((await cloudProcess()).pid).not.toBe(first.pid)
  })
})

/** Whether a process is a cloud, and not one of its machines. */
function isCloud(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(practiceEntry)
  } catch {
    return false
  }
}
