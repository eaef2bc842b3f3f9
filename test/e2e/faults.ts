import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobView } from '../../src/contract/schemas.ts'
import type { JobWatch } from '../support/watch.ts'
import { jobs, python, type Installation, type Party } from './support.ts'

/** Who is killed, at which step. `of`: whose attempt's, where a move has two. */
export interface Fault {
  readonly at: string
  /** `machine`: taken by its provider without a word */
  readonly party: Party | 'machine'
  readonly of?: 'source' | 'target'
}

export const titleOf = ({ at, party, of }: Fault): string => `${of ? `the ${of}'s ${party}` : `the ${party}`} at ${at}`

/** Whether a job that does not run any more cannot go on from what was saved before the fault. */
export const lostItsSave = ({ state, checkpoint, resumableUntil }: JobView, { at }: Fault): boolean =>
  ['restore', 'promise', 'seal', 'committed'].includes(at) &&
  (state === 'failed' || state === 'suspended') &&
  (checkpoint === null || (state === 'failed' && resumableUntil === null))

const patience = 60_000
let runs = 0

/** One job that is put through a fault, and everything that must hold of it afterwards. */
export class Trial {
  readonly portal: Installation
  readonly job: JobWatch
  readonly #gate: string

  private constructor(portal: Installation, job: JobWatch, gate: string) {
    this.portal = portal
    this.job = job
    this.#gate = gate
  }

  /** A job that is well into its steps, on the practice cloud's northern machines. Python and Node by turns. */
  static async begin(portal: Installation, env: Readonly<Record<string, string>> = {}): Promise<Trial> {
    const name = `trial-${++runs}`
    const gate = join(portal.outside, `${name}.gate`)
    const script =
      python !== null && runs % 2 === 0 ? [python, join(jobs, 'steps.py')] : [process.execPath, join(jobs, 'steps.mjs')]
    // the SDK's process is not the job's first one: what ends it need not end the job
    const command = ['sh', '-c', '"$@"; code=$?; echo "it ended with $code"; exit $code', 'sh', ...script]
    const job = await portal.run({ name, command, on: 'practice/north-1', env: { GATE: gate, ...env } })
    await job.line('step 2 ')
    return new Trial(portal, job, gate)
  }

  /** `kill -9`, and what a person or a machine does next: the control plane is started again. */
  async strike({ at, party, of }: Fault): Promise<void> {
    const first = this.job.events.find(({ kind }) => kind === 'started')?.facts['attempt'] as number
    const current = Number(this.job.events.findLast(({ kind }) => kind === 'resumed')?.facts['attempt'] ?? first)
    const token = of === 'target' ? current + 1 : current
    if (party === 'machine')
      return void (await this.portal.client.practiceReclaim({ body: { machine: `${this.job.id}.${token}` } }))
    const killed = await this.portal.kill(party, this.job, token)
    // a step may be over, and its machine let go, before the blow comes
    if (killed.length === 0) assert.notEqual((await this.job.view()).move?.step, at, `nobody to kill: ${party}`)
    if (party === 'control plane') await this.portal.serve()
  }

  /** Waits until an attempt's process is there, whatever it does. */
  async hasJob(token: number): Promise<void> {
    const until = performance.now() + patience
    while ((await this.portal.find('job', this.job, token)).length === 0) {
      if (performance.now() > until) throw new Error(`attempt ${token} of ${this.job.name} has no process`)
      await sleep(5)
    }
  }

  /**
   * Waits until the job has come to rest: nothing of it is under way, and if it is said to run, it does (a step is seen
   * that was made after this was asked).
   */
  async rest(): Promise<JobView> {
    const until = performance.now() + patience
    const before = this.steps().length
    let view: JobView | null = null
    while (performance.now() < until) {
      view = await this.job.view()
      const open = view.move !== null || (view.wish !== null && view.wish !== undefined)
      if (!open && ['suspended', 'failed', 'stopped', 'succeeded'].includes(view.state)) return view
      const made = this.steps().slice(before)
      if (!open && view.state === 'running' && made.some(({ attempt }) => attempt === view?.attempt)) return view
      await sleep(10)
    }
    const happened = this.job.events.map(
      ({ kind, why, facts }) => `${kind} ${why?.sentence ?? ''} ${JSON.stringify(facts)}`,
    )
    throw new Error(`${this.job.name} does not come to rest: ${JSON.stringify(view)}\n${happened.join('\n')}`)
  }

  steps(): readonly { readonly attempt: number; readonly step: number; readonly at: number }[] {
    return this.#traced().filter(({ word }) => word === 'step')
  }

  /** Goes on from where the fault left it, to the end, and looks that all was carried. */
  async finish(view: JobView): Promise<void> {
    const { client } = this.portal
    if (view.state === 'failed' && view.resumableUntil === null) {
      // nothing was saved before it was lost: there is nothing to go on from, and it says so
      assert.equal(view.checkpoint, null)
      assert.ok(view.why?.sentence)
      this.#oneAtATime()
      return
    }
    if (view.state !== 'running') {
      const after = this.job.last
      await client.resume({ params: { ref: this.job.id } })
      await this.job.event('resumed', after)
    }
    const last = await this.rest()
    assert.equal(last.state, 'running')
    writeFileSync(this.#gate, '')
    const { log, end } = await this.job.end()
    assert.equal(end.state, 'succeeded')
    this.#oneAtATime()
    this.#logIsWhatWasWritten(log)
  }

  /** Every step once, in order: nothing was lost and nothing done again, and no line is missing or twice. */
  async wasSeamless(): Promise<void> {
    const log = await this.job.log()
    const lines = log.split('\n').filter((line) => line.startsWith('step '))
    assert.deepEqual(
      lines.map((line) => Number(line.split(' ')[1])),
      lines.map((_, n) => n),
    )
  }

  /** J-SAFE-2: the stays of attempts do not overlap, and come in the order of their tokens. */
  #oneAtATime(): void {
    const seen = this.#traced()
    const stays = [...new Set(seen.map(({ attempt }) => attempt))].map((attempt) => {
      const at = seen.filter((one) => one.attempt === attempt).map((one) => one.at)
      return { attempt, from: Math.min(...at), until: Math.max(...at) }
    })
    for (const [n, stay] of stays.entries()) {
      const before = stays[n - 1]
      if (!before) continue
      assert.ok(stay.attempt > before.attempt, `attempt ${stay.attempt} came after ${before.attempt}`)
      assert.ok(stay.from > before.until, `attempt ${stay.attempt} began while ${before.attempt} ran`)
    }
  }

  /** The log is, attempt by attempt, what the attempt wrote outside too; each line follows from the one before. */
  #logIsWhatWasWritten(log: string): void {
    const logged = log.split('\n').flatMap((line) => {
      const [, step, x] = /^step (\d+) x (\d+)$/.exec(line) ?? []
      return step === undefined ? [] : [{ step: Number(step), x: Number(x) }]
    })
    const value = values(Math.max(...logged.map(({ step }) => step)) + 1)
    for (const { step, x } of logged) assert.equal(x, value[step], `the value at step ${step}`)
    const written = this.steps()
    // an attempt may have been killed before it wrote a step outside: its beginning tells where its lines start
    const begun = this.#traced().filter(({ word }) => word === 'begin')
    const attempts = begun.map(({ attempt }) => attempt)
    let rest = logged.map(({ step }) => step)
    for (const attempt of attempts) {
      const own = written.filter((one) => one.attempt === attempt).map(({ step }) => step)
      // killed between the two writes, or with the second one of a step that is not the job's any more: one apart at most
      const lengths = [own.length, own.length + 1, own.length - 1]
      const follows = attempts[attempts.indexOf(attempt) + 1]
      const startOf = (one: number | undefined) => begun.find(({ attempt: its }) => its === one)?.step
      const start = startOf(attempt) ?? 0
      const next = follows === undefined ? null : startOf(follows)
      const taken = lengths.find(
        (length) =>
          length >= 0 &&
          rest.slice(0, length).every((step, n) => step === start + n) &&
          (next === null || next === undefined
            ? rest.length === length
            : rest[length] === next || rest[length] === undefined),
      )
      assert.ok(taken !== undefined, `attempt ${attempt} wrote ${own.join()}; of the log is left ${rest.join()}`)
      rest = rest.slice(taken)
    }
    assert.deepEqual(rest, [])
  }

  #traced(): readonly {
    readonly word: string
    readonly attempt: number
    readonly step: number
    readonly at: number
  }[] {
    return this.portal.traced(this.job.name).map((line) => {
      const [word = '', attempt, step, at] = line.split(' ')
      return { word, attempt: Number(attempt), step: Number(step), at: Number(at) }
    })
  }
}

/** What `x` is after each step. */
function values(count: number): readonly number[] {
  let x = 1n
  return Array.from({ length: count }, () => {
    x = (x * 1103515245n + 12345n) % 2147483648n
    return Number(x)
  })
}
