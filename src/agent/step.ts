import type { AttemptExit, AttemptOrder, AttemptPhase, AttemptReport } from '../contract/agent.ts'
import { minute, second, type Duration } from '../core/time/index.ts'
import type { AttemptSeen, AttemptState, Now, Step } from './model.ts'

/** A job that has not called `job.state()` within this long of its start is taken to have no way of saving. */
export const sdkPatience: Duration = 10 * second
/** Something that failed is tried again after this long. */
export const retryAfter: Duration = 10 * second

const wait = (until: Duration = Infinity): Step => ({ do: 'wait', until })
const change = (changed: Partial<AttemptState>): Step => ({ do: 'change', change: changed })

/** An attempt that was never heard of before. */
export const newAttempt = ({ attempt, token }: AttemptOrder, bootId: string): AttemptState => ({
  format: 1,
  attempt,
  token,
  bootId,
  version: -1,
  want: { do: 'end' },
  start: null,
  from: null,
  startedAt: null,
  ran: false,
  sdk: null,
  lastSlot: 0,
  parent: null,
  saving: null,
  held: null,
  promised: null,
  voided: [],
  stop: null,
  ending: null,
  exit: null,
  delivered: false,
  probe: null,
  saved: null,
  saveRefused: null,
  restoreFailed: null,
  undeclared: [],
  told: [],
})

/**
 * Takes an order on. Null: it is refused, being of an older version than one taken on already, or of another attempt.
 * The same order twice changes nothing.
 */
export const takeOrder = (state: AttemptState, order: AttemptOrder): AttemptState | null => {
  const { want, jobVersion } = order
  if (order.attempt !== state.attempt || order.token !== state.token || jobVersion < state.version) return null
  const taken = { ...state, version: jobVersion, want }
  if (want.do !== 'prepare' && want.do !== 'run') return taken
  if (state.start !== null) return taken
  return { ...taken, start: want.start, from: want.slot, parent: want.slot, lastSlot: want.start.lastSlot }
}

/** What need not be on disk: whoever ordered it orders it again. Nothing of it was begun, or it is forgotten at once. */
export const isOrderedAnew = ({ want, startedAt, ending, exit }: AttemptState): boolean =>
  exit === null
    ? (want.do === 'prepare' || want.do === 'run') && startedAt === null && ending === null
    : want.do === 'end'

/** How it carries its state, as far as that is known. */
export const methodOf = (state: AttemptState, { boot }: Now): AttemptReport['method'] => {
  if (state.start?.checkpoint === 'none') return 'none'
  if (state.sdk) return 'sdk'
  return state.startedAt && state.ran && boot >= state.startedAt.boot + sdkPatience ? 'none' : 'unknown'
}

const noWay = (state: AttemptState): string =>
  state.start?.checkpoint === 'none'
    ? 'the job was started with --checkpoint none: nothing of its state is carried'
    : 'the job has not called portal.job().state(): nothing says what its state is'

/** A checkpoint before the deadline begins this long before it: three times what the last one took, at least 20 s, at most half of what is left of a whole lease. */
export const lastSaveLead = ({ saved, start }: AttemptState): Duration => {
  const length = start?.settings.leaseLength
  return Math.min(Math.max(3 * (saved?.took ?? 0), 20 * second), typeof length === 'number' ? length / 2 : Infinity)
}

/**
 * What to do next for one attempt, and nothing else: no clock, no disk, no socket. Asked after every order, event, timer and
 * restart; what is intended is remembered (`change`) before it is done.
 */
export const nextStep = (state: AttemptState, seen: AttemptSeen, now: Now): Step => {
  if (state.exit) return afterExit(state, seen, now)
  // its end is being put down
  if (seen.busy === 'change') return wait()
  // the processes are gone: how that came to be is put down before anything else
  if (state.startedAt && seen.keeper === 'over') {
    const begun = seen.kept.is !== 'new'
    // on its way in: what it is shows when that is done
    if (seen.busy === 'start') return wait()
    if (begun || state.ending || state.want.do === 'end') return change(ended(state, seen, now))
    if (state.want.do === 'stop') return change({ ending: 'stopped' })
    if (seen.busy !== null || seen.lease === null) return wait()
    return now.boot < seen.retryAt ? wait(seen.retryAt) : { do: 'start' }
  }
  if (state.ending) {
    if (state.startedAt) return { do: 'kill' }
    return seen.busy === 'start' ? wait() : change(ended(state, seen, now))
  }
  if (state.want.do === 'end') return change({ ending: 'ended' })
  if (!state.startedAt) return beforeStart(state, seen, now)
  // the keeper ends it all the same; this is for what the keeper cannot say
  if (seen.lease !== null && now.boot >= seen.lease) return change({ ending: 'deadline' })
  if (state.held) return whileHeld(state, state.held, seen, now)
  if (state.want.do === 'kill-held') return change({ ending: 'ended' })
  if (seen.suspect) return wait(seen.lease ?? Infinity)
  // what was started for it is waited for, then looked at
  if (seen.busy !== null) return wait(seen.lease ?? Infinity)
  if (seen.frozen) return { do: 'thaw' }
  if (state.saving) return now.boot < seen.retryAt ? wait(seen.retryAt) : { do: 'look' }
  return state.ran ? whileRunning(state, seen, now) : whilePreparing(state, seen)
}

const afterExit = (state: AttemptState, seen: AttemptSeen, { boot }: Now): Step => {
  if (state.want.do === 'end') return { do: 'forget' }
  if (state.delivered || seen.busy !== null) return wait()
  if (boot < seen.retryAt) return wait(seen.retryAt)
  const own = state.exit?.how === 'exited' || state.exit?.how === 'stopped'
  return own && state.start && state.start.outputs.length > 0 ? { do: 'deliver' } : change({ delivered: true })
}

/** How the attempt ended, from what the keeper put down and what was being done to it. */
const ended = (state: AttemptState, { kept, keptAt }: AttemptSeen, now: Now): Partial<AttemptState> => {
  const exit = (how: AttemptExit['how'], more: Partial<AttemptExit> = {}): Partial<AttemptState> => ({
    exit: { code: null, signal: null, at: keptAt ?? now.wall, how, error: null, ...more },
    saving: null,
  })
  // a stop that has not asked yet did not end it
  const how = state.ending === 'stopped' || (state.stop && state.stop.askedAt !== null) ? 'stopped' : 'exited'
  switch (kept.is) {
    case 'exit':
      return exit(how, { code: kept.code })
    case 'signal':
      return exit(how, { signal: signalName(kept.number) })
    case 'deadline':
      return exit('deadline')
    case 'no-workdir':
      return exit('could-not-start', { error: 'its working directory is not there any more' })
    case 'no-start':
      return exit('could-not-start', {
        error:
          kept.code === 126
            ? `${state.start?.command[0]} cannot be executed`
            : `the command ${state.start?.command[0]} was not found`,
      })
  }
  if (state.ending) return exit(state.ending, kept.is === 'begun' ? { signal: 'SIGKILL' } : {})
  return exit('ended', {
    error:
      kept.is === 'begun'
        ? 'its processes were ended from outside, or with the machine: it was restarted, or somebody killed them'
        : null,
  })
}

const signalNames: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  5: 'SIGTRAP',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  10: 'SIGUSR1',
  11: 'SIGSEGV',
  12: 'SIGUSR2',
  13: 'SIGPIPE',
  14: 'SIGALRM',
  15: 'SIGTERM',
  24: 'SIGXCPU',
  25: 'SIGXFSZ',
  31: 'SIGSYS',
}
const signalName = (number: number): string => signalNames[number] ?? `signal ${number}`

/** Nothing runs yet. No process starts without a lease (J-LEASE-1). */
const beforeStart = (state: AttemptState, seen: AttemptSeen, { boot }: Now): Step => {
  if (state.start === null || state.want.do === 'kill-held') return wait()
  if (state.want.do === 'stop') return change({ ending: 'stopped' })
  // what it was to begin from cannot be had: it is for others to say what becomes of it
  if (seen.busy !== null || state.restoreFailed) return wait()
  if (boot < seen.retryAt) return wait(seen.retryAt)
  if (seen.workdir === 'absent') return { do: 'fetch' }
  return seen.lease === null ? wait() : { do: 'start' }
}

const whilePreparing = (state: AttemptState, seen: AttemptSeen): Step => {
  if (state.want.do === 'stop') return stopping(state, null)
  const { restored } = seen
  if (state.from !== null && restored?.is === 'failed' && state.restoreFailed === null)
    return change({ restoreFailed: restored.failure })
  // a first attempt has nothing to wait for; a restored one is let run only once its values are proven
  const ready = state.from === null || restored?.is === 'restored'
  // whoever is probed or held was to run before: the order in between was not seen here
  return ready && ['run', 'probe', 'hold'].includes(state.want.do) ? change({ ran: true }) : wait()
}

const whileHeld = (state: AttemptState, held: NonNullable<AttemptState['held']>, seen: AttemptSeen, now: Now): Step => {
  const { want } = state
  // runs on: first on disk, then in truth
  const release = (more: Partial<AttemptState> = {}): Step => change({ held: null, promised: null, ...more })
  switch (want.do) {
    case 'kill-held':
      return change({ ending: 'killed-held' })
    case 'stop':
      return release({ lastSlot: Math.max(state.lastSlot, want.lastSlot) })
    case 'hold':
      if (want.move !== held.move && !state.voided.includes(want.move))
        return change({ promised: null, held: { ...held, move: want.move, until: now.boot + want.holdFor } })
      break
    case 'promise':
      if (want.move === held.move && state.promised !== want.move) return change({ promised: want.move })
      break
    case 'run':
      if (held.move !== null && want.aborted === held.move) {
        const lastSlot = Math.max(state.lastSlot, want.lastSlot)
        // what made it hold anyway still holds it: the checkpoint is as good as it was
        if (stillOnItsOwn(state, held, seen, now))
          return change({ lastSlot, promised: null, held: { ...held, move: null, until: null } })
        return release({ lastSlot })
      }
      break
    case 'probe':
      // it is saved already: there is nothing to ask it, and it could not answer
      break
  }
  if (held.move === null) return stillOnItsOwn(state, held, seen, now) ? wait(seen.lease ?? Infinity) : release()
  if (state.promised === held.move || held.until === null) return wait(seen.lease ?? Infinity)
  // alone for too long: void first, so that this move can never be committed, then run on
  if (now.boot >= held.until) return release({ voided: [...state.voided, held.move].slice(-100) })
  return wait(Math.min(held.until, seen.lease ?? Infinity))
}

/** Whether what made it hold by itself lasts: the notice stands, or the lease was not renewed. */
const stillOnItsOwn = (
  state: AttemptState,
  { because }: NonNullable<AttemptState['held']>,
  seen: AttemptSeen,
  now: Now,
): boolean => {
  if (seen.notice && state.start?.settings.spot !== false) return true
  return because === 'deadline' && seen.lease !== null && seen.lease - now.boot <= lastSaveLead(state)
}

const whileRunning = (state: AttemptState, seen: AttemptSeen, now: Now): Step => {
  const { want, start } = state
  if ((want.do === 'run' || want.do === 'stop') && want.lastSlot > state.lastSlot)
    return change({ lastSlot: want.lastSlot })
  if (!seen.let) return { do: 'let-run' }
  const method = methodOf(state, now)
  const known = state.startedAt ? state.startedAt.boot + sdkPatience : Infinity
  const refuse = (move: string | null, why: string): Step =>
    change({ saveRefused: { move, refused: [], why, at: now.wall } })

  if (want.do === 'stop') return stopping(state, now, method, want.save && seen.connected ? want : null)

  if (want.do === 'probe' && state.probe?.move !== want.move) {
    if (method === 'none') return change({ probe: { move: want.move, bytes: 0, refused: [], why: noWay(state) } })
    // a job that is only starting is given the time to say what its state is
    if (method === 'unknown') return wait(known)
    return { do: 'probe', move: want.move, wait: start?.settings.safePointWait ?? 10 * minute }
  }
  if (want.do === 'hold' && !state.voided.includes(want.move) && state.saveRefused?.move !== want.move) {
    if (method === 'none') return refuse(want.move, noWay(state))
    if (method === 'unknown') return wait(known)
    return {
      do: 'save',
      hold: { move: want.move, because: 'order', holdFor: want.holdFor },
      wait: want.safePointWait,
    }
  }

  const own = onItsOwn(state, seen, now)
  if (own) {
    if (method === 'none') return state.saveRefused?.why === noWay(state) ? wait(own.next) : refuse(null, noWay(state))
    if (method === 'unknown') return wait(Math.min(known, own.next))
    if (now.boot < seen.retryAt) return wait(Math.min(seen.retryAt, own.next))
    return { do: 'save', hold: { move: null, because: own.because, holdFor: null }, wait: own.wait }
  }
  if (seen.asks) return { do: 'save', hold: null, wait: minute }
  return wait(seen.lease === null ? Infinity : seen.lease - lastSaveLead(state))
}

/** What makes it save and hold without being told: the machine will be taken (J-SPOT-1), or its lease runs out (J-LEASE-2). */
const onItsOwn = (
  state: AttemptState,
  { notice, lease }: AttemptSeen,
  now: Now,
): { readonly because: 'notice' | 'deadline'; readonly wait: Duration; readonly next: Duration } | null => {
  const end = lease ?? Infinity
  if (notice && state.start?.settings.spot !== false)
    return { because: 'notice', wait: Math.max(second, notice.endsAt - now.wall), next: end }
  if (now.boot >= end - lastSaveLead(state))
    return { because: 'deadline', wait: Math.max(second, end - now.boot), next: end }
  return null
}

/** SIGTERM, after a checkpoint where one is wanted; what is left after the grace is killed. */
const stopping = (
  state: AttemptState,
  now: Now | null,
  method: AttemptReport['method'] = 'none',
  save: { readonly safePointWait: Duration } | null = null,
): Step => {
  const { stop, want } = state
  if (now === null) return change({ ending: 'stopped' })
  if (save && method === 'sdk' && !stop?.saved) return { do: 'save', hold: null, wait: save.safePointWait }
  if (!stop || stop.askedAt === null) return { do: 'ask-to-end' }
  const until = stop.askedAt + (want.do === 'stop' ? want.grace : 0)
  return now.boot >= until ? change({ ending: 'stopped' }) : wait(until)
}

/** What is reported of it in one word. */
export const phaseOf = (state: AttemptState, seen: AttemptSeen): AttemptPhase => {
  if (state.exit) return 'ended'
  if (state.ending || state.stop) return 'stopping'
  if (state.held) return state.promised !== null && state.promised === state.held.move ? 'promised' : 'held'
  if (!state.start) return 'new'
  if (seen.busy === 'save') return 'saving'
  if (state.ran) return seen.kept.is === 'new' ? 'preparing' : 'running'
  return state.from !== null && seen.restored?.is === 'restored' ? 'prepared' : 'preparing'
}
