/**
 * Every error that a user can meet: what happened, and what to do. `{name}` is filled from the error's facts.
 * `exit` is the command line's exit code: 1 failed, 2 usage, 3 refused with its values, 4 not found, 5 unreachable.
 */
interface Entry {
  readonly status: number
  readonly exit: 1 | 2 | 3 | 4 | 5
  readonly message: string
  readonly advice: string
}

export const errors = {
  // what was asked cannot be understood
  invalid_request: {
    status: 400,
    exit: 2,
    message: '{place}: {problem}',
    advice: 'Correct it and ask again; nothing was changed.',
  },
  invalid_json: {
    status: 400,
    exit: 2,
    message: 'the request body is not JSON: {problem}',
    advice: 'Send a JSON object with content-type application/json.',
  },
  unsupported_type: {
    status: 415,
    exit: 2,
    message: 'this route takes {expected}, not {got}',
    advice: 'Set the content-type header to {expected}.',
  },
  body_too_large: {
    status: 413,
    exit: 2,
    message: 'the request body is larger than the {limitBytes} bytes that this route takes',
    advice: 'Send less: leave large files out of the working directory by .portalignore, or fetch them in the job.',
  },
  hash_mismatch: {
    status: 400,
    exit: 1,
    message: 'the bytes that arrived have the sha256 {got}, not {expected}',
    advice: 'They changed on the way or while they were read; nothing was kept. Send them again.',
  },
  upload_incomplete: {
    status: 400,
    exit: 1,
    message: 'the upload ended after {receivedBytes} bytes, before it was whole',
    advice: 'Nothing was kept. Send it again.',
  },
  unknown_setting: {
    status: 400,
    exit: 2,
    message: '{place}: there is no setting {key}',
    advice: 'Known: {nearest}.',
  },
  invalid_setting: {
    status: 400,
    exit: 2,
    message: '{place}: {problem}',
    advice: 'Correct it and ask again; nothing was changed.',
  },
  unknown_pattern: {
    status: 400,
    exit: 2,
    message: 'nothing that is connected matches {pattern}',
    advice: 'Known: {nearest}; `portal offers` lists all.',
  },
  ambiguous_pattern: {
    status: 400,
    exit: 2,
    message: '{pattern} could mean {meanings}',
    advice: 'Spell it out.',
  },
  ambiguous_job: {
    status: 409,
    exit: 2,
    message: '{ref} is the beginning of more than one job: {matches}',
    advice: 'Type more of the name.',
  },
  name_taken: {
    status: 409,
    exit: 2,
    message: 'there is a job named {name} already',
    advice: 'Take another --name, or leave it out and Portal makes one.',
  },

  // not allowed
  unauthorized: {
    status: 401,
    exit: 1,
    message:
      'the token is missing or wrong: send the one in the file `token` of the data directory as `authorization: Bearer …`',
    advice: 'Check that PORTAL_HOME names the data directory of the control plane that you reach.',
  },
  wrong_host: {
    status: 403,
    exit: 1,
    message: 'the control plane does not answer to the host name {host}',
    advice: 'Reach it by 127.0.0.1 or localhost, or start it with `portal serve --host NAME`.',
  },
  wrong_origin: {
    status: 403,
    exit: 1,
    message: 'a web page of {origin} may not use the control plane',
    advice: 'Use the command line, or a page that the control plane itself serves.',
  },
  not_yours: {
    status: 403,
    exit: 1,
    message: 'this agent does not serve {what}',
    advice: "An agent reads and writes for its own machine's attempts only.",
  },

  // not there
  job_not_found: {
    status: 404,
    exit: 4,
    message: 'there is no job {ref}',
    advice: 'The nearest known: {nearest}. `portal ps --all` lists all jobs.',
  },
  route_not_found: {
    status: 404,
    exit: 4,
    message: 'there is nothing at {method} {path}',
    advice: 'GET /api/openapi.json describes every route.',
  },
  method_not_allowed: {
    status: 405,
    exit: 2,
    message: '{path} does not take {method}',
    advice: 'It takes {allowed}.',
  },
  workdir_not_found: {
    status: 404,
    exit: 4,
    message: 'the working directory {sha256} has not been sent',
    advice: 'Send its archive by PUT /api/workdirs/{sha256} first.',
  },
  output_not_found: {
    status: 404,
    exit: 4,
    message: 'job {job} has no output {path}',
    advice:
      'Declared: {declared}. What a job writes there arrives within seconds; what is not declared with --output is not kept.',
  },
  machine_not_found: {
    status: 404,
    exit: 4,
    message: 'there is no machine {machine}',
    advice: 'Known: {known}.',
  },
  offer_not_found: {
    status: 404,
    exit: 4,
    message: 'there is no offer {offer}',
    advice: 'Known: {nearest}; `portal offers` lists all.',
  },
  practice_absent: {
    status: 404,
    exit: 4,
    message: 'no practice cloud is connected',
    advice: 'Add one: `portal connections add practice`.',
  },

  // refused, with its values
  checkpoint_refused: {
    status: 409,
    exit: 3,
    message: '{job} stays where it is and runs on: a checkpoint cannot carry {count} of its values',
    advice: 'Each is named with its path, its reason and what to do about it.',
  },

  // not possible as things stand
  job_ended: {
    status: 409,
    exit: 1,
    message: '{job} has ended: {state}',
    advice: 'Run it again with `portal run`; one that was stopped can be resumed while its checkpoint is kept.',
  },
  wrong_state: {
    status: 409,
    exit: 1,
    message: '{job} is {state}: it cannot be asked to {action}',
    advice: 'Possible now: {possible}.',
  },
  resume_lost: {
    status: 409,
    exit: 1,
    message: 'another resume of {job} came first',
    advice: 'Follow it with `portal logs -f {job}`.',
  },
  nothing_to_resume: {
    status: 409,
    exit: 1,
    message: '{job} has no checkpoint to go on from: {reason}',
    advice: 'Start it anew with `portal run`.',
  },
  no_better_place: {
    status: 409,
    exit: 1,
    message: 'there is no better place for {job} than {offer}',
    advice: '`portal move --on PATTERN` moves it somewhere all the same; `portal offers` lists where to.',
  },
  no_offer_fits: {
    status: 409,
    exit: 1,
    message: 'no offer fits {job}: {reason}',
    advice: '`portal explain {job}` says what was tried and what would make it fit.',
  },
  changed_meanwhile: {
    status: 409,
    exit: 1,
    message: '{job} changed while this was being decided',
    advice: 'Look at it with `portal show {job}` and ask again.',
  },

  // the control plane itself
  control_plane_unreachable: {
    status: 503,
    exit: 5,
    message: 'the control plane at {url} cannot be reached: {reason}',
    advice:
      'Start it with `portal serve`, or look with `portal doctor`. Running jobs go on until their leases run out.',
  },
  not_serving: {
    status: 503,
    exit: 5,
    message: 'no control plane runs on the data directory {home}',
    advice: 'Start it with `portal serve`.',
  },
  shutting_down: {
    status: 503,
    exit: 5,
    message: 'the control plane is stopping',
    advice: 'Ask again when it has been started anew.',
  },
  already_serving: {
    status: 409,
    exit: 1,
    message: 'a control plane (process {pid}) runs on the data directory {home} already',
    advice:
      'Use it as it is. If commands do not find it, end it with `kill {pid}`: the next command starts one, and jobs run on.',
  },
  too_many_streams: {
    status: 429,
    exit: 1,
    message: '{limit} streams are being followed already, which is the limit',
    advice: 'End some of them, or ask with `once=true`.',
  },
  provider_failed: {
    status: 502,
    exit: 1,
    message: '{provider} answered: {reason}',
    advice: '{hint}',
  },
  disk_full: {
    status: 507,
    exit: 1,
    message: 'no room left on the disk of {path}',
    advice: 'Make room and ask again; nothing half-written was kept.',
  },
  data_newer: {
    status: 500,
    exit: 1,
    message: '{file} was written by a newer Portal (format {found}, this one knows {known})',
    advice: 'Start the newer Portal; an older one never touches it.',
  },
  home_unsafe: {
    status: 500,
    exit: 1,
    message: 'the data directory {home} is not safe to use: {problem}',
    advice: '{hint}',
  },
  home_unusable: {
    status: 500,
    exit: 1,
    message: '{home} cannot be used to keep data in: {problem}',
    advice: 'Set PORTAL_HOME to a directory of your own.',
  },
  protocol_unknown: {
    status: 502,
    exit: 1,
    message: 'what answers at {url} is not a Portal control plane: {problem}',
    advice: 'Check the address in serve.json of the data directory; `portal doctor` looks at both.',
  },
  internal: {
    status: 500,
    exit: 1,
    message: 'something went wrong that Portal did not expect; its log tells more under the request {request}',
    advice: 'Look with `portal doctor`; the log is in the data directory.',
  },
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof errors

type Holes<S extends string> = S extends `${string}{${infer Hole}}${infer Rest}` ? Hole | Holes<Rest> : never
type FactNames<C extends ErrorCode> = Holes<(typeof errors)[C]['message'] | (typeof errors)[C]['advice']>

/** The facts that an error's sentences need, and whatever else is worth knowing (`refused`: the values). */
export type FactsOf<C extends ErrorCode> = Readonly<Record<FactNames<C>, string | number | readonly string[]>> &
  Readonly<Record<string, unknown>>

/** The one error of Portal's interfaces, on both sides of the wire. */
export class PortalError extends Error {
  readonly code: string
  readonly advice: string
  readonly facts: Readonly<Record<string, unknown>>
  /** HTTP status */
  readonly status: number
  /** what a command that fails with it exits with */
  readonly exitCode: number

  constructor(
    code: string,
    message: string,
    advice: string,
    facts: Readonly<Record<string, unknown>>,
    status: number,
    exitCode: number,
  ) {
    super(message)
    this.name = 'PortalError'
    this.code = code
    this.advice = advice
    this.facts = facts
    this.status = status
    this.exitCode = exitCode
  }

  /** What goes over the wire. */
  toJSON(): { error: { code: string; message: string; advice: string; facts: Readonly<Record<string, unknown>> } } {
    return { error: { code: this.code, message: this.message, advice: this.advice, facts: this.facts } }
  }
}

/** Makes an error of the catalogue: `portalError('job_not_found', { ref: 'nigtly', nearest: 'nightly' })`. */
export function portalError<C extends ErrorCode>(code: C, facts: FactsOf<C>): PortalError {
  const { status, exit, message, advice } = errors[code]
  return new PortalError(code, fill(message, facts), fill(advice, facts), facts, status, exit)
}

/** Reads an error off the wire. A code that this Portal does not know (a newer control plane's) keeps its sentences. */
export function portalErrorFrom(body: unknown, status: number, url: string): PortalError {
  const error = isRecord(body) && isRecord(body['error']) ? body['error'] : null
  if (error === null || typeof error['code'] !== 'string' || typeof error['message'] !== 'string')
    return portalError('protocol_unknown', {
      url,
      problem: `it answered with status ${status} and no error of Portal's`,
    })
  const known = Object.hasOwn(errors, error['code']) ? errors[error['code'] as ErrorCode] : null
  return new PortalError(
    error['code'],
    error['message'],
    typeof error['advice'] === 'string' ? error['advice'] : '',
    isRecord(error['facts']) ? error['facts'] : {},
    status,
    known?.exit ?? (status === 404 ? 4 : status < 500 ? 2 : 1),
  )
}

function fill(template: string, facts: Readonly<Record<string, unknown>>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const fact = facts[name]
    return Array.isArray(fact) ? fact.join(', ') : String(fact)
  })
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
