import { afterEach, expect, test } from 'vitest'
import { fileURLToPath } from 'node:url'
import { Attempt, type Saved } from '../support/sdk-node/agent.ts'

const script = (name: string) => fileURLToPath(new URL(`../support/sdk-node/${name}`, import.meta.url))
const attempts: Attempt[] = []
const start = async (name: string, options?: Parameters<typeof Attempt.start>[1]): Promise<Attempt> => {
  const attempt = await Attempt.start(script(name), options)
  attempts.push(attempt)
  return attempt
}
afterEach(async () => {
  await Promise.all(attempts.splice(0).map((attempt) => attempt.close()))
})

test('K-NODE-1 a job saved at a safe point and killed goes on in a fresh process as if nothing had happened', async () => {
  const whole = await start('job.mjs')
  await whole.welcome(null)
  whole.run()
  expect(await whole.ended).toBe(0)

  const first = await start('job.mjs', { env: { PAUSE: '20' } })
  await first.setFlag(1)
  await first.welcome(null)
  first.run()
  await first.frame('safe-point')
  await first.go()
  const { turn } = await first.safePoint()
  expect(turn).toBeGreaterThan(1)
  const saved = await first.saved()
  expect(saved.values.map((value) => value.path)).toEqual([
    'state.step',
    'state.model',
    'state.names',
    'state.log',
    'state.random',
    'state.last',
  ])
  await first.kill()

  const second = await start('job.mjs')
  await second.restore(saved)
  second.run()
  expect(await second.ended).toBe(0)
  expect(second.output).toBe(whole.output)
  expect(await second.counters()).toMatchObject({ done: 12, total: 12 })
})

test('K-PY-6 saved at any turn, before the first and after the last included, the resumed trace equals the uninterrupted one', async () => {
  const whole = await start('job.mjs', { env: { STEPS: '4' } })
  await whole.welcome(null)
  whole.run()
  await whole.ended

  const watched = await start('job.mjs', { env: { STEPS: '4' } })
  await watched.setFlag(1)
  await watched.welcome(null)
  watched.run()
  const everyTurn: Saved[] = []
  for (let turn = 1; turn <= 5; turn++) {
    expect((await watched.frame('safe-point')).meta.turn).toBe(turn)
    everyTurn.push(await watched.saved())
    watched.send({ t: 'go' })
  }
  expect(await watched.ended).toBe(0)
  expect(watched.output).toBe(whole.output)

  for (const saved of everyTurn) {
    const resumed = await start('job.mjs', { env: { STEPS: '4' } })
    await resumed.restore(saved)
    resumed.run()
    expect(await resumed.ended).toBe(0)
    expect(resumed.output).toBe(whole.output)
  }
})

test('K-WHOLE-2 a state of many chunks, zeros among them, is carried over several frames and back into the script’s memory', async () => {
  const source = `
    class Point { constructor(n) { this.x = n; this.name = 'point ' + n } }
    job.classes(Point)
    const big = new Float64Array(1_500_000)
    const state = await job.state({ step: 0, big, items: [], more: null })
    for (const step of job.steps(state, 'step', 3)) {
      for (let at = step; at < 600_000; at += 3) big[at] = Math.sin(at)
      for (let n = 0; n < 50_000; n++) state.items.push(new Point(n))
      state.more = new Uint8Array(300_000).fill(step)
    }
    const { createHash } = await import('node:crypto')
    console.log(state.big === big, createHash('sha256').update(big).update(JSON.stringify(state.items)).update(state.more).digest('hex'))
    console.log(state.items.every((item) => item instanceof Point))
  `
  const begin = async () => {
    const attempt = await Attempt.startSource(source)
    attempts.push(attempt)
    return attempt
  }
  const first = await begin()
  await first.setFlag(1)
  await first.welcome(null)
  first.run()
  for (let turn = 0; turn < 2; turn++) {
    await first.frame('safe-point')
    first.send({ t: 'go' })
  }
  await first.frame('safe-point')
  const saved = await first.saved()
  expect(saved.streams.map(({ name, data }) => [name, data.length > 4 << 20])).toEqual([
    ['graph', false],
    ['buffers', true],
  ])
  await first.go()
  expect(await first.ended).toBe(0)
  const second = await begin()
  await second.restore(saved)
  second.run()
  expect(await second.ended).toBe(0)
  expect(second.output).toBe(first.output)
})
