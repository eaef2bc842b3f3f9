import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { money } from '../../src/core/money/index.ts'
import { second } from '../../src/core/time/index.ts'
import { endAllHere, firstConnections, openProviders, type ConnectionEntry } from '../../src/providers/index.ts'
import type { Provider, StartRequest } from '../../src/providers/port.ts'
import { isPractice } from '../../src/providers/practice/index.ts'
import { agentEntry, endStrays, practiceEntry, processesOf, startRequest, strays } from './provider/harness.ts'

/**
 * What every provider keeps. An adapter adds a connection here; what only it does is tested in a file of its own.
 * `gone` says how long it may take until an ended machine is seen to have ended.
 */
const adapters = firstConnections.map((entry) => ({
  entry,
  // said here and not by the adapter, so that none excuses itself
  owned: entry.provider === 'this-machine',
  gone: 5 * second,
}))

/** Opens the provider of one connection in a home of its own for a group of tests, and leaves nothing behind. */
function setUp({ connection, provider: name, settings: given }: ConnectionEntry) {
  let home: string
  let provider: Provider
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'portal-provider-'))
    const settings = name === 'practice' ? { bootDelay: 10 } : given
    const programs = { agent: agentEntry, practice: practiceEntry }
    const opened = await openProviders({ home, programs, entries: [{ connection, provider: name, settings }] })
    const found = opened.get(connection)
    if (found === undefined) throw new Error(`${connection} was not opened`)
    provider = found
  })
  afterAll(async () => {
    if (isPractice(provider)) await provider.shutdown()
    if ('stopAgent' in provider && typeof provider.stopAgent === 'function') await provider.stopAgent()
    await provider.close()
    await endStrays(home)
    await rm(home, { recursive: true, force: true })
  })
  return {
    provider: () => provider,
    request: async (rowId: string): Promise<StartRequest> => {
      const [offer] = await provider.offers(startRequest.needs)
      if (offer === undefined) throw new Error('no offers')
      return { ...startRequest, rowId, offer }
    },
  }
}

describe.each(adapters)('any provider: $entry.provider', ({ entry }) => {
  const { provider, request } = setUp(entry)

  test('offers are well formed, and each id is there once', async () => {
    const found = await provider().offers(startRequest.needs)
    expect(found.length).toBeGreaterThan(0)
    expect(new Set(found.map(({ id }) => id)).size).toBe(found.length)
    for (const offer of found) {
      expect(offer.connection).toBe(entry.connection)
      expect(offer.provider).toBe(provider().name)
      const spelled = [offer.connection, offer.region, offer.zone, offer.type, offer.market].join('/')
      expect(offer.id).toBe(offer.market === 'owned' ? offer.type : spelled)
      expect(offer.market === 'owned').toBe(provider().owns === 'owned')
      expect(Number.isSafeInteger(offer.price.micros) && offer.price.micros >= 0).toBe(true)
      expect(offer.price.currency).toMatch(/^[A-Z]{3}$/)
      expect(offer.cpus).toBeGreaterThan(0)
      expect(offer.memoryBytes).toBeGreaterThan(0)
      for (const length of [offer.notice, offer.lifetime]) expect(length === null || length > 0).toBe(true)
    }
  })

  test('a quote is the price now; of an offer that is not there, a typed refusal', async () => {
    const { offer } = await request('job1.1')
    expect((await provider().quote(offer)).price).toEqual(offer.price)
    await expect(provider().quote({ ...offer, id: `${offer.id}x` })).rejects.toMatchObject({
      name: 'ProviderError',
      kind: 'not_found',
    })
  })

  test('a start repeated for the same row, at once or later, is one machine, and alive', async () => {
    const wanted = await request('job1.2')
    const [first, second] = await Promise.all([provider().start(wanted), provider().start(wanted)])
    expect(second).toEqual(first)
    expect(await provider().start(wanted)).toEqual(first)
    expect(await provider().observe(first.machineId)).toEqual({ is: 'alive', machineId: first.machineId })
  })

  test('machines that nobody knows are not found, and their end does no harm', async () => {
    expect(await provider().observe('nobody')).toEqual({ is: 'not_found' })
    await provider().end('nobody')
    // a name that every object has is no machine either
    expect(await provider().observe('constructor')).toEqual({ is: 'not_found' })
    await provider().end('__proto__')
  })

  test('a start of an offer that is not there is refused by kind', async () => {
    const wanted = await request('job1.3')
    const offer = { ...wanted.offer, id: `${wanted.offer.id}x` }
    await expect(provider().start({ ...wanted, offer })).rejects.toMatchObject({
      name: 'ProviderError',
      kind: 'not_found',
    })
  })
})

describe.each(adapters.filter(({ owned }) => !owned))(
  'a provider whose machines are rented: $entry.provider',
  ({ entry, gone }) => {
    const { provider, request } = setUp(entry)

    test('two rows are two machines, both in the list with their tags', async () => {
      const [one, other] = [
        await provider().start(await request('job2.1')),
        await provider().start(await request('job3.1')),
      ]
      expect(one.machineId).not.toBe(other.machineId)
      expect(await provider().list()).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ machineId: one.machineId, rowId: 'job2.1', installation: 'installation-1' }),
          expect.objectContaining({ machineId: other.machineId, rowId: 'job3.1', installation: 'installation-1' }),
        ]),
      )
    })

    test('an end, doubled and late, ends once: terminal or forgotten, and the row never starts again', async () => {
      const wanted = await request('job4.1')
      const { machineId } = await provider().start(wanted)
      await Promise.all([provider().end(machineId), provider().end(machineId)])
      await vi.waitFor(
        async () => expect(['terminal', 'not_found']).toContain((await provider().observe(machineId)).is),
        {
          timeout: gone,
        },
      )
      const ended = await provider().observe(machineId)
      await provider().end(machineId)
      expect(await provider().observe(machineId)).toEqual(ended)
      expect(await provider().start(wanted)).toEqual({ machineId })
      expect(await provider().observe(machineId)).toEqual(ended)
    })

    test('J-RUN-6 a start for less than it costs now is refused as price_changed', async () => {
      const wanted = await request('job5.1')
      const offer = { ...wanted.offer, price: { ...wanted.offer.price, micros: wanted.offer.price.micros - 1 } }
      await expect(provider().start({ ...wanted, offer })).rejects.toMatchObject({ kind: 'price_changed' })
      const other = { ...wanted.offer, price: money(1000, 'XTS') }
      await expect(provider().start({ ...wanted, offer: other })).rejects.toMatchObject({ kind: 'price_changed' })
      expect((await provider().list()).filter(({ rowId }) => rowId === 'job5.1')).toEqual([])
    })

    test('a hard stop that can be moved: only of a machine that lives', async () => {
      expect(provider().renew !== undefined).toBe(provider().hardStop === 'renewable')
      const renew = provider().renew?.bind(provider())
      if (renew === undefined) return
      const { machineId } = await provider().start(await request('job7.1'))
      await renew(machineId, 60 * second)
      await provider().end(machineId)
      await expect(renew(machineId, 60 * second)).rejects.toMatchObject({ kind: 'terminal' })
      await expect(renew('nobody', 60 * second)).rejects.toMatchObject({ kind: 'not_found' })
    })
  },
)

describe.each(adapters.filter(({ owned }) => owned))(
  'a provider whose machines are owned: $entry.provider',
  ({ entry }) => {
    const { provider, request } = setUp(entry)

    test('J-NEVER-2 an owned machine is never ended', async () => {
      const { machineId } = await provider().start(await request('job6.1'))
      await provider().end(machineId)
      expect(await provider().observe(machineId)).toEqual({ is: 'alive', machineId })
    })
  },
)

test('all that providers run here is ended at once, and ending nothing is no error', async () => {
  const home = await mkdtemp(join(tmpdir(), 'portal-provider-'))
  const programs = { agent: agentEntry, practice: practiceEntry }
  const providers = await openProviders({ home, programs, entries: firstConnections })
  for (const [connection, provider] of providers) {
    const [offer] = await provider.offers(startRequest.needs)
    if (offer !== undefined) await provider.start({ ...startRequest, rowId: `${connection}.1`, offer })
    await provider.close()
  }
  expect(processesOf(home).length).toBeGreaterThan(1)
  await endAllHere({ home, programs })
  await endAllHere({ home, programs })
  // what an agent of the host started has keepers of its own
  const left = processesOf(home).filter((pid) => !strays(home).includes(pid))
  await endStrays(home)
  expect(left).toEqual([])
  await rm(home, { recursive: true, force: true })
})

test('a connection to a provider that does not exist is refused by name', async () => {
  const programs = { agent: agentEntry, practice: practiceEntry }
  const entries = [{ connection: 'mine', provider: 'practise', settings: {} }]
  await expect(openProviders({ home: '/nowhere', programs, entries })).rejects.toThrow(
    /connection mine: there is no provider "practise"; known: .*practice/,
  )
})
