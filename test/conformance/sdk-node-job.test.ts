import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Attempt, registerUrl, sdkUrl } from '../support/sdk-node/agent.ts'

const attempts: Attempt[] = []
const start = async (source: string, options?: Parameters<typeof Attempt.start>[1]): Promise<Attempt> => {
  const attempt = await Attempt.startSource(source, options)
  attempts.push(attempt)
  return attempt
}
afterEach(async () => {
  await Promise.all(attempts.splice(0).map((attempt) => attempt.close()))
})

/** Every Node on this machine's PATH of another version than the project's own: jobs run under what they find. */
const otherNodes = [...new Set((process.env.PATH ?? '').split(delimiter))]
  .map((folder) => join(folder, 'node'))
  .filter((path) => existsSync(path))
  .map((path) => ({ path, version: execFileSync(path, ['--version'], { encoding: 'utf8' }).trim() }))
  .filter(({ version }) => version !== process.version && Number(version.slice(1).split('.')[0]) >= 20)
const nodes = [{ path: process.execPath, version: process.version }, ...otherNodes.slice(0, 1)]

describe.for(nodes)('under Node $version', ({ path: node }) => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portal-sdk-'))
    // where a folder above is a package, it is not this one's
    await writeFile(join(folder, 'package.json'), '{ "name": "someones-own" }')
  })
  afterAll(() => rm(folder, { recursive: true }))
  const run = async (name: string, source: string, env: Record<string, string> = {}) => {
    await mkdir(join(folder, name, '..'), { recursive: true })
    await writeFile(join(folder, name), source)
    return promisify(execFile)(node, [join(folder, name)], {
      env: { PATH: process.env.PATH, NODE_OPTIONS: `--import=${registerUrl}`, ...env },
    })
  }

  test('a job finds portal/sdk from anywhere without installing it, as ES module and by require', async () => {
    expect((await run('a.mjs', "import { job } from 'portal/sdk'\nconsole.log(typeof job.steps)")).stdout).toBe(
      'function\n',
    )
    const both =
      "const { job } = require('portal/sdk'); import('portal/sdk').then((sdk) => console.log(sdk.job === job))"
    expect((await run('a.cjs', both)).stdout).toBe('true\n')
  })

  test('a package of the project’s own called portal goes first only where it has an sdk', async () => {
    const own = (name: string, exported: object) =>
      run(
        join(name, 'node_modules', 'portal', 'package.json'),
        JSON.stringify({ name: 'portal', exports: exported }),
      ).catch(() => {})
    const asks = "import * as sdk from 'portal/sdk'\nconsole.log(Object.keys(sdk).join())"
    await own('without', { '.': './index.js' })
    expect((await run(join('without', 'a.mjs'), asks)).stdout).toBe('job\n')
    await own('with', { './sdk': './sdk.mjs' })
    await run(join('with', 'node_modules', 'portal', 'sdk.mjs'), 'export const mine = 1')
    expect((await run(join('with', 'a.mjs'), asks)).stdout).toBe('mine\n')
  })

  test('a module that is missing is still reported as missing', async () => {
    await expect(run('b.mjs', "import 'portal/other'")).rejects.toThrow(/ERR_MODULE_NOT_FOUND/)
    await expect(run('b.cjs', "require('portal-sdk')")).rejects.toThrow(/MODULE_NOT_FOUND/)
  })

  test('outside Portal everything is there and does nothing', async () => {
    const { stdout } = await run(
      'outside.mjs',
      `import { job } from 'portal/sdk'
       job.onStart(() => console.log('start'))
       const given = { step: 1, list: [] }
       const state = await job.state(given)
       job.onSuspend(() => console.log('never'))
       for (const step of job.steps(state, 'step', 4)) { state.list.push(step); job.checkpoint(); job.progress(step) }
       for await (const step of job.stepsAsync({ n: 0 }, 'n', 2)) state.list.push(step)
       job.checkpoint(); job.safePoint()
       console.log(given === state, state.list.join(), state.step, job.attempt, job.clock() >= 0)`,
    )
    expect(stdout).toBe('start\ntrue 1,2,3,0,1 4 0 true\n')
  })

  test('saved under this Node and restored, the job goes on as if nothing had happened', async () => {
    const script = fileURLToPath(new URL('../support/sdk-node/job.mjs', import.meta.url))
    const begin = async (options: Parameters<typeof Attempt.start>[1]) => {
      const attempt = await Attempt.start(script, options)
      attempts.push(attempt)
      return attempt
    }
    const whole = await begin({ node })
    await whole.welcome(null)
    whole.run()
    await whole.ended
    const first = await begin({ node })
    await first.setFlag(1)
    await first.welcome(null)
    first.run()
    for (let turn = 1; turn < 6; turn++) {
      await first.frame('safe-point')
      first.send({ t: 'go' })
    }
    await first.frame('safe-point')
    const saved = await first.saved()
    await first.kill()
    // and across versions: saved by this one, restored by the project's own
    for (const other of new Set([node, process.execPath])) {
      const second = await begin({ node: other })
      await second.restore(saved)
      second.run()
      expect(await second.ended).toBe(0)
      expect(second.output).toBe(whole.output)
    }
  })
})

test('job.state takes a plain object, once', async () => {
  const job = await start(`
    for (const bad of [null, 1, [], new Map(), undefined]) await job.state(bad).catch((error) => console.log(error.name))
    await job.state({ step: 0 })
    await job.state({ step: 0 }).catch((error) => console.log(error.message))
  `)
  await job.welcome(null)
  job.run()
  expect(await job.ended).toBe(0)
  expect(job.output).toBe(
    `${'TypeError\n'.repeat(5)}job.state was called a second time: a job has one state; put everything into the first call\n`,
  )
})

test('K-PY-5 nothing of the job runs before it may: neither timers nor what was given to job.onStart', async () => {
  const job = await start(`
    setInterval(() => console.log('tick'), 5).unref()
    job.onStart(() => console.log('start'))
    const state = await job.state({ step: 0 })
    console.log('running', job.attempt)
    process.exit()
  `)
  await job.welcome(null)
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(job.output).toBe('')
  job.run()
  await job.ended
  expect(job.output).toBe('start\nrunning 3\n')
})

test('K-NODE-1 a loop that does nothing else still sees that something is asked', async () => {
  const job = await start(`
    const state = await job.state({ step: 0, sum: 0 })
    for (const step of job.steps(state, 'step', Infinity)) state.sum += step & 1
  `)
  await job.welcome(null)
  job.run()
  await new Promise((resolve) => setTimeout(resolve, 500))
  const { turn = 0 } = await job.safePoint()
  expect(turn).toBeGreaterThan(100_000)
  await job.saved()
  job.send({ t: 'exit', why: 'enough' })
  expect(await job.ended).toBe(75)
})

test('K-PY-4 a checkpoint that the job asks for comes at the next safe point, or at once outside a loop', async () => {
  const job = await start(`
    const state = await job.state({ step: 0, at: null })
    for (const step of job.steps(state, 'step', 4)) if (step === 1) job.checkpoint()
    state.at = 'after'
    job.checkpoint()
    console.log('done')
  `)
  await job.welcome(null)
  job.run()
  expect((await job.frame('safe-point')).meta).toMatchObject({ asks: 'checkpoint', turn: 3 })
  await job.go()
  expect((await job.frame('safe-point')).meta).toMatchObject({ asks: 'checkpoint' })
  const saved = await job.saved()
  expect(saved.values.map((value) => value.kind)).toEqual(['number', 'string'])
  await job.go()
  expect(await job.ended).toBe(0)
})

test('K-PY-4 job.clock goes on over attempts and stands still while the job does', async () => {
  const source = `
    const state = await job.state({ step: 0, seen: 0 })
    for (const step of job.steps(state, 'step', 2)) { const until = Date.now() + 120; while (Date.now() < until); state.seen = job.clock() }
    console.log(Math.round(state.seen), Math.round(job.clock() - state.seen), job.restored)
  `
  const first = await start(source)
  await first.setFlag(1)
  await first.welcome(null)
  first.run()
  await first.frame('safe-point')
  first.send({ t: 'go' })
  await first.frame('safe-point')
  await new Promise((resolve) => setTimeout(resolve, 400))
  const saved = await first.saved()
  await first.kill()
  const second = await start(source)
  await second.restore(saved)
  second.run()
  await second.ended
  expect(second.output).toContain('true')
  const [ran = 0, after = 0] = second.output.split(' ').map(Number)
  expect(ran).toBeGreaterThanOrEqual(230)
  expect(ran).toBeLessThan(390)
  expect(after).toBeLessThan(100)
})

test('processes and threads that the job starts are not the job', async () => {
  const job = await start(`
    import { spawnSync } from 'node:child_process'
    import { Worker } from 'node:worker_threads'
    const inner = "import(" + JSON.stringify(${JSON.stringify(sdkUrl)}) + ").then(async ({ job }) => { await job.state({ step: 0 }); console.log('inner') })"
    const child = () => console.log(spawnSync(process.execPath, ['-e', inner], { encoding: 'utf8', timeout: 20_000 }).stdout.trim())
    child()
    const state = await job.state({ step: 0 })
    child()
    const worker = new Worker(inner, { eval: true, stdout: true })
    worker.stdout.on('data', (bytes) => process.stdout.write(bytes))
    await new Promise((resolve) => worker.on('exit', resolve))
    for (const step of job.steps(state, 'step', 2));
  `)
  await job.welcome(null)
  job.run()
  expect(await job.ended).toBe(0)
  expect(job.output).toBe('inner\ninner\ninner\n')
})

test('the SDK neither keeps the process alive nor holds up its end', async () => {
  const job = await start(
    "await job.state({ step: 0 })\nconsole.log(Date.now())\nprocess.on('exit', () => console.log(Date.now()))",
  )
  await job.welcome(null)
  job.run()
  expect(await job.ended).toBe(0)
  const [last = 0, exit = 0] = job.output.split('\n').map(Number)
  expect(exit - last).toBeLessThan(1_000)
})

test('K-NODE-1 swapped buffers, moved and new objects come back as the script’s own or as new ones', async () => {
  const source = `
    const one = new Float64Array(4), two = new Float64Array(4), list = [], inner = { n: 0 }
    const state = await job.state({ step: 0, current: one, next: two, list, box: { inner }, away: null })
    for (const step of job.steps(state, 'step', 5)) {
      state.next.set(state.current.map((value) => value + step + 1))
      ;[state.current, state.next] = [state.next, state.current]
      list.push({ step })
      inner.n++
      if (step === 1) { state.away = state.box.inner; state.box = { made: 'later' } }
    }
    console.log(state.current === one, one.join(), two.join(), list.length, state.list === list, state.away === inner, inner.n, state.box.made)
  `
  const whole = await start(source)
  await whole.welcome(null)
  whole.run()
  await whole.ended
  const first = await start(source)
  await first.setFlag(1)
  await first.welcome(null)
  first.run()
  const states = []
  for (let turn = 0; turn < 6; turn++) {
    await first.frame('safe-point')
    states.push(await first.saved())
    first.send({ t: 'go' })
  }
  for (const saved of states) {
    const next = await start(source)
    await next.restore(saved)
    next.run()
    await next.ended
    expect(next.output).toBe(whole.output)
  }
})
