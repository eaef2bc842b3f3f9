import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { boot, bootedBefore, furnish } from '../../src/providers/practice/cloud/boot.ts'
import { confinements, killAll, markedProcesses, permitted } from '../../src/providers/practice/cloud/confine.ts'
import { isAlive } from '../../src/providers/processes.ts'
import { agentEntry, endStrays, processesOf, startRequest } from './provider/harness.ts'

/** Every way to keep a machine's processes together, though the cloud takes only the surest that works here. */
const ways = await Promise.all(confinements.map(async (one) => ({ ...one, works: await permitted(one) })))
for (const { works, prefix } of ways)
  if (!works) console.log(`not tested: ${prefix.join(' ')} is not permitted on this machine`)

let folder: string
const machineId = () => `m-test${folder.slice(-6)}`

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portal-confine-'))
  await furnish(folder, startRequest.bootstrap)
})
afterEach(async () => {
  await endStrays(folder)
  await rm(folder, { recursive: true, force: true })
})

describe.each(ways.filter(({ works }) => works))('a machine kept together by: $kind $prefix', (confinement) => {
  const start = () => boot({ machineId: machineId(), folder, agentEntry, confinement })
  const runs = () =>
    vi.waitFor(async () => expect(await readFile(join(folder, 'stray.pid'), 'utf8')).not.toBe(''), {
      timeout: 10_000,
      interval: 20,
    })

  test('killed: no process of it is left, nor one that left its parent and session', async () => {
    const outer = await start()
    await runs()
    expect(processesOf(folder).length).toBeGreaterThan(2)
    await killAll(machineId(), outer, confinement.kind)
    expect(isAlive(outer)).toBe(false)
    expect(processesOf(folder)).toEqual([])
  })

  test('killed though nobody knows its process: its mark is enough', async () => {
    await start()
    await runs()
    await killAll(machineId(), null, confinement.kind)
    await vi.waitFor(() => expect(processesOf(folder)).toEqual([]))
  })

  test('booted once, however often it is asked; a cloud that comes back finds it', async () => {
    const outer = await start()
    await runs()
    const again = await start()
    await vi.waitFor(() => expect(isAlive(again)).toBe(false))
    expect(await bootedBefore(folder, markedProcesses(machineId()))).toEqual(outer)
    expect((await readFile(join(folder, 'started'), 'utf8')).trim().split('\n')).toHaveLength(1)
    await killAll(machineId(), outer, confinement.kind)
    expect(await bootedBefore(folder, markedProcesses(machineId()))).toBeNull()
  })

  test('turned off by its agent: nothing is left', async () => {
    const outer = await start()
    await runs()
    await writeFile(join(folder, 'halt'), '')
    await vi.waitFor(() => expect(isAlive(outer)).toBe(false), { timeout: 5000 })
    await killAll(machineId(), outer, confinement.kind)
    expect(processesOf(folder)).toEqual([])
  })
})

test('a namespace ends what wiped its mark; the cloud takes one wherever it may', async () => {
  const [first] = ways.filter(({ works }) => works)
  expect(first).toBeDefined()
  if (first?.kind !== 'namespace') return console.log('not tested: namespaces are not permitted on this machine')
  await writeFile(join(folder, 'wipe'), '')
  const outer = await boot({ machineId: machineId(), folder, agentEntry, confinement: first })
  await vi.waitFor(() => expect(wiped()).toHaveLength(1), { timeout: 10_000, interval: 20 })
  await killAll(machineId(), outer, first.kind)
  expect(wiped()).toEqual([])
})

/** The processes that have this folder in their command and no environment. */
const wiped = (): readonly number[] =>
  processesOf(`${folder}/wiped`).filter((pid) => !markedProcesses(machineId()).some((one) => one.pid === pid))
