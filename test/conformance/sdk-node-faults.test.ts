import { afterEach, describe, expect, test } from 'vitest'
import { Attempt, type Saved } from '../support/sdk-node/agent.ts'

const attempts: Attempt[] = []
const start = async (source: string, options?: Parameters<typeof Attempt.start>[1]): Promise<Attempt> => {
  const attempt = await Attempt.startSource(source, options)
  attempts.push(attempt)
  return attempt
}
afterEach(async () => {
  await Promise.all(attempts.splice(0).map((attempt) => attempt.close()))
})
/** Runs a job from its start to a safe point at which it is asked. */
const atSafePoint = async (source: string): Promise<Attempt> => {
  const attempt = await start(source)
  await attempt.setFlag(1)
  await attempt.welcome(null)
  attempt.run()
  await attempt.frame('safe-point')
  return attempt
}
const savedOf = async (source: string): Promise<Saved> => {
  const attempt = await atSafePoint(source)
  const saved = await attempt.saved()
  await attempt.kill()
  return saved
}
/** A job that is saved at its first safe point or runs a few steps. */
const loop = (state: string, body = '') => `
  const state = await job.state(${state})
  for (const step of job.steps(state, 'step', 3)) { ${body} }
  console.log('done', JSON.stringify(state, (key, value) => (typeof value === 'bigint' ? String(value) : value)))
`
const slowly = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30)'

describe('what cannot be carried', () => {
  test('K-STRICT-1 every bad value is named together by path, nothing is written, and the job runs on', async () => {
    const job = await atSafePoint(`
      import { Socket } from 'node:net'
      const state = await job.state({ step: 0, loader: { workers: [0, 1, { sock: null }] }, run: null })
      state.loader.workers[2].sock = new Socket()
      state.run = () => 1
      for (const step of job.steps(state, 'step', 3));
      console.log('done', state.loader.workers[2].sock.destroyed)
    `)
    const named = [
      ['state.run', 'function'],
      ['state.loader.workers[2].sock', 'Socket'],
    ]
    const probed = await job.probe()
    expect(probed.t).toBe('refused')
    expect(probed.values?.map((value) => [value.path, value.type])).toEqual(named)
    const refused = await job.save()
    expect('refused' in refused && refused.refused.map((value) => [value.path, value.type])).toEqual(named)
    await job.go()
    expect(await job.ended).toBe(0)
    expect(job.output).toBe('done false\n')
  })

  test('a probe says how big the state is and changes nothing', async () => {
    const job = await atSafePoint(loop('{ step: 0, big: new Float64Array(100_000), n: [1, 2] }'))
    expect(await job.probe()).toMatchObject({ t: 'probed', objects: 4 })
    expect((await job.probe()).bytes).toBeGreaterThan(800_000)
    await job.go()
    expect(await job.ended).toBe(0)
  })

  test('job.onSuspend closes what could not be carried, and opens it again where the job goes on', async () => {
    const job = await atSafePoint(`
      const state = await job.state({ step: 0, open: null })
      state.open = () => 'a connection'
      job.onSuspend(() => {
        const closed = state.open
        state.open = null
        job.checkpoint()
        console.log('closed')
        return () => { state.open = closed; console.log('opened') }
      })
      for (const step of job.steps(state, 'step', 2));
      console.log('done', state.open())
    `)
    expect(await job.probe()).toMatchObject({ t: 'probed' })
    const saved = await job.saved()
    expect(saved.values.map((value) => [value.path, value.kind])).toEqual([
      ['state.step', 'number'],
      ['state.open', 'null'],
    ])
    await job.go()
    expect(await job.ended).toBe(0)
    expect(job.output).toBe('closed\nopened\nclosed\nopened\ndone a connection\n')
  })

  test('a job.onSuspend that fails refuses the save by name, and the job runs on', async () => {
    const job = await atSafePoint(
      loop('{ step: 0 }').replace('for', "job.onSuspend(() => { throw new Error('no way') })\nfor"),
    )
    const refused = await job.save()
    expect('refused' in refused && refused.refused).toMatchObject([
      { path: 'job.onSuspend', reason: expect.stringContaining('no way') },
    ])
    await job.go()
    expect(await job.ended).toBe(0)
  })

  test('a toPortal that changes the state refuses the save, also in its middle, and the job runs on', async () => {
    const job = await atSafePoint(`
      class Odd { #n = 0; toPortal() { state.grows.push(new Array(100).fill('x')); return this.#n } static fromPortal() { return new Odd() } }
      job.classes(Odd)
      const state = await job.state({ step: 0, grows: [], odd: null, big: new Float64Array(1_000_000).fill(2) })
      state.odd = new Odd()
      for (const step of job.steps(state, 'step', 3));
      console.log('done')
    `)
    const refused = await job.save()
    expect('refused' in refused && refused.refused).toMatchObject([
      { path: 'state', reason: expect.stringContaining('changed while it was written') },
    ])
    await job.go()
    expect(await job.ended).toBe(0)
    expect(job.output).toBe('done\n')
  })

  test('more than a thousand bad values are counted', async () => {
    const job = await atSafePoint(loop('{ step: 0, many: Array.from({ length: 1500 }, () => () => 1) }'))
    const { values = [] } = await job.probe()
    expect(values).toHaveLength(1001)
    expect(values.at(-1)?.reason).toContain('500 more')
  })
})

describe('what cannot be put back', () => {
  test('K-NODE-1 what the script’s own objects cannot take is named, and the job never runs', async () => {
    const saved = await savedOf(
      loop('{ step: 0, w: new Float64Array(10), list: [], map: new Map(), same: {}, fine: { a: 1 } }'),
    )
    const job = await start(`
      const one = {}
      ${loop('{ step: 0, w: new Float64Array(11), list: {}, map: new Map(), same: one, fine: one }')}
    `)
    await job.welcome(saved)
    const { meta } = await job.frame('restore-refused')
    expect(meta.values?.map((value) => [value.path, value.reason])).toEqual([
      ['state.w', 'the script has a Float64Array(11) there'],
      ['state.list', 'the script has a Object there'],
      ['state.fine', 'here it is the same object as state.same, and was another'],
    ])
    job.send({ t: 'exit', why: 'the restore was refused' })
    expect(await job.ended).toBe(75)
    expect(job.output).toBe('')
    expect(job.errors).toContain('state.w')
  })

  test('a frozen object of the script’s is refused unless it is equal', async () => {
    const saved = await savedOf(
      loop('{ step: 0, kept: Object.freeze({ a: 1 }), changed: Object.freeze({ a: 1 }), open: {} }'),
    )
    const job = await start(
      loop('{ step: 0, kept: Object.freeze({ a: 1 }), changed: Object.freeze({ a: 2 }), open: Object.freeze({}) }'),
    )
    await job.welcome(saved)
    const { meta } = await job.frame('restore-refused')
    expect(meta.values?.map((value) => value.path)).toEqual(['state.changed', 'state.open'])
  })

  test('a class that is not known here is named', async () => {
    const saved = await savedOf(`class Point { x = 1 }\n${loop('{ step: 0, at: new Point() }')}`)
    const job = await start(loop('{ step: 0, at: null }'))
    await job.welcome(saved)
    const { meta } = await job.frame('restore-refused')
    expect(meta.values).toMatchObject([{ type: 'Point', advice: expect.stringContaining('job.classes(Point)') }])
  })

  test('K-WHOLE-4 another language is refused by name; another machine only where equal bytes are asked for', async () => {
    const saved = await savedOf(loop('{ step: 0 }'))
    const elsewhere = { ...saved, environment: { ...saved.environment, machine: 'plan9-mips' } }
    const strict = await start(loop('{ step: 0 }'))
    await strict.welcome(elsewhere, true)
    expect((await strict.frame('restore-refused')).meta.values).toMatchObject([
      { path: 'environment.machine', type: 'plan9-mips' },
    ])
    const loose = await start(loop('{ step: 0 }'))
    await loose.restore(elsewhere)
    const other = await start(loop('{ step: 0 }'))
    await other.welcome({ ...saved, environment: { ...saved.environment, language: 'python' } })
    expect((await other.frame('restore-refused')).meta.values).toMatchObject([{ path: 'environment.language' }])
  })

  test('K-WHOLE-3 values that come out with another digest than was saved are refused', async () => {
    const saved = await savedOf(loop('{ step: 0 }'))
    const job = await start(loop('{ step: 0 }'))
    await job.welcome({ ...saved, digest: '0'.repeat(64) })
    expect((await job.frame('restore-refused')).meta.why).toContain('another digest')
  })

  test('K-WHOLE-3 an object whose class gives back something else is named', async () => {
    const source = (less: number) => `
      class Purse { #n; constructor(n) { this.#n = n } toPortal() { return { n: this.#n } }
        static fromPortal({ n }) { return new Purse(n - ${less}) } }
      job.classes(Purse)
      ${loop('{ step: 0, held: null }', 'state.held ??= { purse: new Purse(5) }')}
    `
    const first = await start(source(1))
    await first.setFlag(1)
    await first.welcome(null)
    first.run()
    await first.frame('safe-point')
    first.send({ t: 'go' })
    await first.frame('safe-point')
    const saved = await first.saved()
    await first.kill()
    const wrong = await start(source(1))
    await wrong.welcome(saved)
    const { meta } = await wrong.frame('restore-refused')
    expect(meta.values).toMatchObject([{ path: 'state.held.purse.toPortal()', reason: 'it did not come back equal' }])
    const right = await start(source(0))
    await right.restore(saved)
  })

  test('K-WHOLE-2 a damaged checkpoint is not interpreted: the job ends with 75', async () => {
    const saved = await savedOf(loop('{ step: 0, big: new Uint8Array(100_000) }'))
    const job = await start(loop('{ step: 0, big: new Uint8Array(100_000) }'))
    await job.frame('hello')
    job.sendRestore(saved)
    job.send({ t: 'damaged', what: 'chunk 1 of graph' })
    expect(await job.ended).toBe(75)
    expect(job.errors).toContain('chunk 1 of graph')
    expect(job.output).toBe('')
  })

  test.for([
    ['a graph cut short', (graph: Buffer) => graph.subarray(0, graph.length - 1)],
    ['a graph with more', (graph: Buffer) => Buffer.concat([graph, Buffer.of(0)])],
    ['a graph of nonsense', () => Buffer.from('nonsense'.repeat(10))],
    ['no graph', () => Buffer.alloc(0)],
  ] as const)('%s is refused, not guessed at', async ([, change]) => {
    const saved = await savedOf(loop('{ step: 0, some: [1, 2, { a: "b" }] }'))
    const streams = saved.streams.map(({ name, data }) => ({ name, data: name === 'graph' ? change(data) : data }))
    const job = await start(loop('{ step: 0, some: [] }'))
    await job.welcome({ ...saved, streams })
    expect((await job.frame('restore-refused')).meta.why).toContain('cannot be read')
  })
})

describe('an agent that is lost', () => {
  test('a connection that breaks in the middle of a save: the job runs on, connects again, and is saved', async () => {
    const job = await atSafePoint(
      loop('{ step: 0, big: new Float64Array(2_000_000).fill(1) }', slowly).replace('3)', '60)'),
    )
    await job.breakSave()
    expect(await job.welcome(null)).toMatchObject({ again: true })
    await job.frame('safe-point')
    const saved = await job.saved()
    expect(saved.streams.map((stream) => stream.name)).toEqual(['graph', 'buffers'])
    await job.go()
    expect(await job.ended).toBe(0)
  })

  test('an agent that is away: the safe point waits at most two seconds, then the job goes on to its end', async () => {
    const job = await atSafePoint(loop('{ step: 0 }', slowly))
    await job.vanish()
    const began = Date.now()
    expect(await job.ended).toBe(0)
    expect(Date.now() - began).toBeLessThan(10_000)
  })

  test('before it may run the job waits for an agent, however long, and does not run', async () => {
    const job = await start(loop('{ step: 0 }'), { listen: false })
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(job.output).toBe('')
    await job.listen()
    await job.welcome(null)
    await job.vanish()
    await job.listen()
    expect(await job.welcome(null)).toMatchObject({ again: true, waiting: true, digest: null })
    job.run()
    expect(await job.ended).toBe(0)
  })

  test('an agent lost in the middle of a restore: the restore is done anew', async () => {
    const source = loop('{ step: 0, big: new Float64Array(1_000_000), list: [] }', 'state.list.push(step)')
    const saved = await savedOf(source)
    const job = await start(source)
    await job.frame('hello')
    job.sendRestore(saved)
    await job.vanish()
    await job.listen()
    const hello = await job.welcome(saved)
    expect(hello.again).toBe(undefined)
    expect((await job.frame('restored')).meta.digest).toBe(saved.digest)
    await job.vanish()
    await job.listen()
    expect(await job.welcome(null)).toMatchObject({ again: true, waiting: true, digest: saved.digest })
    job.run()
    expect(await job.ended).toBe(0)
  })

  test('an agent that says what nobody agreed on is left alone; the job runs on', async () => {
    const job = await atSafePoint(loop('{ step: 0 }', slowly).replace('3)', '20)'))
    job.sendRaw(Buffer.from([255, 255, 255, 255, 255, 255, 255, 255]))
    await job.welcome(null)
    await job.frame('safe-point')
    await job.go()
    expect(await job.ended).toBe(0)
  })

  test('a checkpoint that the job asked for while the agent was away is asked for again', async () => {
    const job = await atSafePoint(
      loop('{ step: 0 }', `if (step === 1) job.checkpoint(); ${slowly}`).replace('3)', '400)'),
    )
    await job.go()
    await job.vanish()
    await new Promise((resolve) => setTimeout(resolve, 400))
    await job.listen()
    await job.welcome(null)
    expect((await job.frame('safe-point')).meta).toMatchObject({ asks: 'checkpoint' })
    await job.saved()
    await job.go()
  })

  test('told to exit while it runs, the job ends with 75 at its next safe point', async () => {
    const job = await start(loop('{ step: 0 }', slowly).replace('3)', '1000)'))
    await job.welcome(null)
    job.run()
    await new Promise((resolve) => setTimeout(resolve, 300))
    job.send({ t: 'exit', why: 'superseded' })
    expect(await job.ended).toBe(75)
    expect(job.errors).toContain('superseded')
  })

  test('told to exit at a safe point, the job ends with 75', async () => {
    const job = await atSafePoint(loop('{ step: 0 }'))
    job.send({ t: 'exit', why: 'the machine goes' })
    expect(await job.ended).toBe(75)
    expect(job.errors).toContain('the machine goes')
    expect(job.output).toBe('')
  })
})
