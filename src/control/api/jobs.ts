import { portalError } from '../../contract/errors.ts'
import type {
  AskedView,
  JobRequest,
  JobView,
  MoveRequest,
  NeedsRequest,
  ResumeRequest,
  StopRequest,
} from '../../contract/schemas.ts'
import { endedStates, isEnded, type Asker, type JobRecord, type Needs } from '../../core/jobs/model.ts'
import { knownPatterns, parts, pins, within } from '../../core/jobs/pattern.ts'
import {
  SettingError,
  settingKeys,
  settingsFrom,
  settingsTable,
  type JobSettings,
  type SettingKey,
} from '../../core/jobs/settings.ts'
import { nearest } from '../../core/text.ts'
import { why } from '../../core/reasons.ts'
import { commit, event, updateJob, type Context } from '../engine/context.ts'
import type { Engine } from '../engine/engine.ts'
import { market } from '../engine/offers.ts'
import { jobView } from './views.ts'
import { makeName } from './names.ts'

const person = (by: Asker): string => ('person' in by ? by.person : by.policy)
/** How often a change that raced with the loop is tried again before the caller is told. */
const tries = 20

const defaults: Needs = { cpus: 1, memoryBytes: 512 * 1024 * 1024, diskBytes: 0, gpus: null, image: null }

const needsFrom = (asked: NeedsRequest, over: Needs): Needs => ({
  cpus: asked.cpus ?? over.cpus,
  memoryBytes: asked.memoryBytes ?? over.memoryBytes,
  diskBytes: asked.diskBytes ?? over.diskBytes,
  gpus: asked.gpus ?? over.gpus,
  image: asked.image ?? over.image,
})

/** What people ask of jobs. What is asked is recorded; carrying it out is the loop's. */
export class Jobs {
  readonly #context: Context
  readonly #engine: Engine

  constructor(context: Context, engine: Engine) {
    this.#context = context
    this.#engine = engine
  }

  /** A job by its name, the beginning of one, or its id. Throws `job_not_found` with the nearest, `ambiguous_job`. */
  async find(ref: string): Promise<JobRecord> {
    const { store } = this.#context
    const exact = (await store.jobByName(ref)) ?? (await store.get('jobs', ref))
    if (exact) return exact
    const [first, second, ...more] = await store.jobsByPrefix(ref, 10)
    if (first && !second) return first
    if (first && second)
      throw portalError('ambiguous_job', { ref, matches: [first, second, ...more].map(({ name }) => name) })
    const known = (await store.jobs({ limit: 500 })).map(({ name }) => name)
    throw portalError('job_not_found', {
      ref,
      nearest: nearest(ref, known) ?? (known.length > 0 ? known.slice(0, 3).join(', ') : 'there are none yet'),
    })
  }

  async view(ref: string): Promise<JobView> {
    return this.viewOf(await this.find(ref))
  }

  async viewOf(job: JobRecord): Promise<JobView> {
    const world = await this.#engine.world(job.id)
    if (!world) throw portalError('job_not_found', { ref: job.name, nearest: 'none' })
    return jobView(world, this.#context.clock.now())
  }

  async create(request: JobRequest, by: Asker): Promise<JobView> {
    const { random, store, clock } = this.#context
    const settings = settingsOrError(request.settings)
    const on = request.on === undefined ? null : await this.#pattern(request.on)
    const now = clock.now()
    const because = why('ask.created', { by: person(by) })
    let unsure = false
    let id = `j${random.letters(10)}`
    let name = request.name ?? makeName(request.command, random)
    for (let n = 0; n < tries; n++) {
      const job: Omit<JobRecord, 'version'> = {
        id,
        name,
        spec: {
          command: request.command,
          env: request.env,
          workdir: request.workdir,
          outputs: request.outputs,
          needs: needsFrom(request.needs, defaults),
          on,
          checkpoint: request.checkpoint,
          settings,
        },
        state: { is: 'queued', since: now, why: because },
        wish: null,
        lastToken: 0,
        current: null,
        base: null,
        lastSlot: 0,
        createdAt: now,
        ttlFrom: now,
        exit: null,
        abortedMove: null,
        move: null,
        passedOver: [],
        warnings: [],
        due: now,
      }
      const applied = await store.apply({
        changes: [{ do: 'insert', table: 'jobs', row: job }],
        events: [{ at: now, subject: id, kind: 'created', by: person(by), why: because, facts: { name } }],
      })
      // an answer that did not come: the same insert once more either makes it, or finds it made
      const made = applied.is === 'applied' || (unsure && (await store.get('jobs', id)) !== null)
      if (made) {
        if (applied.is === 'applied') this.#context.happened(applied.seq)
        this.#engine.wake(id)
        return jobView(
          { job: { ...job, version: 1 }, attempts: [], move: null, lastMove: null, seen: () => unseen(id) },
          now,
        )
      }
      if (applied.is === 'refused' && applied.why === 'name_taken' && request.name !== undefined)
        throw portalError('name_taken', { name })
      unsure ||= applied.is === 'unknown'
      if (applied.is === 'unknown') continue
      id = `j${random.letters(10)}`
      name = request.name ?? makeName(request.command, random)
    }
    throw new Error(unsure ? 'the store did not say whether the job was made' : 'no free name was found')
  }

  suspend(ref: string, by: Asker): Promise<AskedView> {
    return this.#ask(ref, by, 'suspend', (job) => {
      const possible = ['running', 'starting', 'moving'].includes(job.state.is)
      if (!possible || job.wish?.to === 'stop') throw wrongState(job, 'suspend')
      return { wish: { to: 'suspend', by, at: this.#context.clock.now() } }
    })
  }

  async move(ref: string, request: MoveRequest, by: Asker): Promise<AskedView> {
    const on = request.on ?? null
    if (on !== null) await this.#pattern(on)
    return this.#ask(ref, by, 'move', (job) => {
      const possible = job.state.is === 'running' || job.state.is === 'starting'
      if (!possible || job.wish?.to === 'stop') throw wrongState(job, 'move')
      return { wish: { to: 'move', by, at: this.#context.clock.now(), on } }
    })
  }

  stop(ref: string, request: StopRequest, by: Asker): Promise<AskedView> {
    return this.#ask(ref, by, 'stop', () => ({
      wish: {
        to: 'stop',
        by,
        at: this.#context.clock.now(),
        keep: !request.now,
        why: why('ask.stop', { by: person(by) }),
      },
      // a queued or suspended job is looked at for it at once
      due: 0,
    }))
  }

  /** At most one resume wins: the write that takes the job out of safe keeping is a compare-and-set (J-RES-1). */
  async resume(ref: string, request: ResumeRequest, by: Asker): Promise<AskedView> {
    const { clock } = this.#context
    const job = await this.find(ref)
    const { state } = job
    if (state.is === 'resuming') throw portalError('resume_lost', { job: job.name })
    if (state.is !== 'suspended' && state.is !== 'stopped' && state.is !== 'failed') throw wrongState(job, 'resume')
    const now = clock.now()
    const until = state.is === 'suspended' ? Infinity : state.resumableUntil
    if (job.base === null || until === null || now > until)
      throw portalError('nothing_to_resume', {
        job: job.name,
        reason: job.base === null ? 'none was committed' : 'it has expired',
      })
    const on = request.on === undefined ? job.spec.on : await this.#pattern(request.on)
    const texts = { ...request.settings, ...(request.ttl !== undefined && { ttl: request.ttl }) }
    const settings = settingsOrError(texts, job.spec.settings)
    const asked: NeedsRequest = {
      ...(request.cpus !== undefined && { cpus: request.cpus }),
      ...(request.memoryBytes !== undefined && { memoryBytes: request.memoryBytes }),
      ...(request.gpus !== undefined && { gpus: request.gpus }),
    }
    const needs = needsFrom(asked, job.spec.needs)
    // a job that its limit ended starts both counts afresh (J-TTL-3)
    const endedByLimit = state.is === 'stopped' && 'policy' in state.by && state.by.policy === 'ttl'
    const seq = await commit(
      this.#context,
      job,
      [
        updateJob(job, {
          state: {
            is: 'resuming',
            since: now,
            token: null,
            by,
            on: null,
            waitUntil: request.wait === undefined ? null : now + request.wait,
            was: state,
          },
          spec: { ...job.spec, on, settings, needs },
          wish: null,
          passedOver: [],
          due: now,
          ...(endedByLimit && { ttlFrom: now }),
        }),
      ],
      [event(job, 'asked', by, why('ask.resume', { by: person(by) }), { to: 'resume' })],
    )
    if (seq === null) throw portalError('resume_lost', { job: job.name })
    return this.#asked(job.id, seq)
  }

  async #ask(
    ref: string,
    by: Asker,
    to: 'suspend' | 'move' | 'stop',
    change: (job: JobRecord) => Partial<JobRecord>,
  ): Promise<AskedView> {
    for (let n = 0; n < tries; n++) {
      const job = await this.find(ref)
      if (isEnded(job.state)) throw portalError('job_ended', { job: job.name, state: job.state.is })
      const row = change(job)
      const reason = why(`ask.${to}`, { by: person(by) })
      const seq = await commit(this.#context, job, [updateJob(job, row)], [event(job, 'asked', by, reason, { to })])
      if (seq !== null) return this.#asked(job.id, seq)
    }
    throw portalError('changed_meanwhile', { job: ref })
  }

  /** The outcome follows as events behind the one that recorded the asking. */
  async #asked(jobId: string, after: number): Promise<AskedView> {
    const job = await this.#context.store.get('jobs', jobId)
    if (!job) throw portalError('job_not_found', { ref: jobId, nearest: 'none' })
    const view = await this.viewOf(job)
    this.#engine.wake(jobId)
    return { job: view, after }
  }

  /** Checks a pattern by what is offered now: it must mean something, and one thing (J-RUN-3). */
  async #pattern(pattern: string): Promise<{ pattern: string; pinned: boolean }> {
    const { providers } = this.#context
    const [head] = parts(pattern)
    const known = [...new Set([...providers.keys(), ...[...providers.values()].map(({ name }) => name)])]
    if (head === undefined || !known.includes(head))
      throw portalError('unknown_pattern', { pattern, nearest: nearest(pattern, known) ?? known.join(', ') })
    const owned = [...providers].filter(([, provider]) => provider.owns === 'owned').map(([connection]) => connection)
    const { offers } = await market(this.#context, { ...defaults, cpus: 0, memoryBytes: 0 }, pattern)
    const patterns = knownPatterns(offers)
    if (offers.length > 0 && !offers.some((offer) => within(pattern, offer, [...providers.keys()])))
      throw portalError('unknown_pattern', {
        pattern,
        nearest: nearest(pattern, patterns) ?? patterns.slice(0, 5).join(', '),
      })
    return { pattern, pinned: pins(pattern, owned) }
  }
}

const unseen = (jobId: string): never => {
  throw new RangeError(`job ${jobId} has no attempt yet`)
}

function wrongState(job: JobRecord, action: string) {
  const possible: Record<string, string> = {
    queued: 'stop',
    starting: 'suspend, move, stop',
    running: 'suspend, move, stop',
    moving: 'suspend, stop',
    suspending: 'stop',
    suspended: 'resume, stop',
    resuming: 'stop',
    stopping: 'stop, to change how',
  }
  const isOver = (endedStates as readonly string[]).includes(job.state.is)
  if (isOver && (action !== 'resume' || job.state.is === 'succeeded'))
    return portalError('job_ended', { job: job.name, state: job.state.is })
  const state = job.wish?.to === 'stop' ? 'stopping' : job.state.is
  return portalError('wrong_state', {
    job: job.name,
    state,
    action,
    possible: possible[state] ?? 'resume, while its checkpoint is kept',
  })
}

function settingsOrError(texts: Readonly<Record<string, string>>, over?: JobSettings): JobSettings {
  try {
    return settingsFrom(texts, over)
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    const { key } = error
    if (!Object.hasOwn(settingsTable, key))
      throw portalError('unknown_setting', {
        place: `settings.${key}`,
        key,
        nearest: nearest(key, settingKeys) ?? settingKeys.join(', '),
      })
    throw portalError('invalid_setting', {
      place: `settings.${key}`,
      key,
      value: texts[key] ?? '',
      problem: error.message,
      range: settingsTable[key as SettingKey].expects,
    })
  }
}
