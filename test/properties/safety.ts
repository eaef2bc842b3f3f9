/** Lines of safety, each with what it is when it is switched off. `mutants.ts` shows that the property finds every one missing. */
export interface Edit {
  readonly file: string
  readonly from: string
  readonly to: string
}
export type Mutant = { readonly what: string } & (Edit | { readonly edits: readonly Edit[] })

const steps = 'src/core/jobs/steps'
const engine = 'src/control/engine'

const noPromise: Edit = {
  file: `${steps}/moving.ts`,
  from: 'if (report?.promised === move.id) return',
  to: 'return',
}
const noSeal: Edit = {
  file: `${engine}/moves.ts`,
  from: 'const seal = await context.chains.seal(world.job.id, move.slot, move.id)',
  to: 'const seal = { sealedSlot: move.slot, adopted: [] as Manifest[] }',
}
const olderOrders: Edit = { file: 'src/agent/step.ts', from: ' || jobVersion < state.version', to: '' }

export const mutants: readonly Mutant[] = [
  { what: 'no promise is asked for, and no seal made', edits: [noPromise, noSeal] },
  {
    what: 'an agent runs on alone without voiding the move, and no seal is made',
    edits: [
      {
        file: 'src/agent/step.ts',
        from: 'return release({ voided: [...state.voided, held.move].slice(-100) })',
        to: 'return release()',
      },
      noSeal,
    ],
  },
  {
    what: 'what agents say of attempts of others is heard',
    edits: [
      {
        file: 'src/control/agents.ts',
        from: 'return this.#served.get(attemptId) === agentId',
        to: 'return this.#served.has(attemptId) || agentId === attemptId',
      },
      {
        file: 'src/control/agents.ts',
        from: 'report: agent.reports.get(attempt.id) ?? null,',
        to: 'report: [...this.#agents.values()].map((one) => one.reports.get(attempt.id)).findLast(Boolean) ?? null,',
      },
    ],
  },
  {
    what: 'an agent takes older orders, and frees a held job for any of them',
    edits: [
      olderOrders,
      {
        file: 'src/agent/step.ts',
        from: 'if (held.move !== null && want.aborted === held.move) {',
        to: 'if (held.move !== null) {',
      },
    ],
  },
  {
    what: 'a hold of another move counts',
    edits: [
      { file: `${steps}/moving.ts`, from: 'if (report?.held?.move === move.id)', to: 'if (report?.held)' },
      noPromise,
    ],
  },
  {
    what: 'a move is committed without a seal',
    file: `${engine}/moves.ts`,
    from: 'const seal = await context.chains.seal(world.job.id, move.slot, move.id)',
    to: 'const seal = { sealedSlot: move.slot, adopted: [] as Manifest[] }',
  },
  {
    what: 'a suspension is confirmed without the end of its source',
    file: `${steps}/moving.ts`,
    from: '  if (exit) {\n    // an end',
    to: "  if (!exit) return { do: 'confirm-suspended', move, attempt: source }\n  if (exit) {\n    // an end",
  },
  {
    what: 'a suspension is confirmed because its source is silent',
    file: `${steps}/moving.ts`,
    from: "if (provenGone(seen) !== null || (!seen.connected && leaseOver(seen, now)))\n    return { do: 'confirm",
    to: "if (!seen.connected)\n    return { do: 'confirm",
  },
  {
    what: 'a second resume is told that it won',
    file: 'src/control/api/jobs.ts',
    from: "if (seq === null) throw portalError('resume_lost', { job: job.name })\n    return this.#asked(job.id, seq)",
    to: 'return this.#asked(job.id, seq ?? 0)',
  },
  {
    what: 'a resume does not wait for the machine before it to be gone',
    file: `${steps}/starting.ts`,
    from: "one.state !== 'gone' && one.ranFrom !== null",
    to: "one.state === 'intended' && one.ranFrom !== null",
  },
  {
    what: 'no promise is asked for',
    file: `${steps}/moving.ts`,
    from: 'if (report?.promised === move.id) return',
    to: 'return',
  },
  {
    what: 'a machine is ended while it is bound',
    file: `${steps}/leaving.ts`,
    from: "if (attempt.state !== 'ending') continue",
    to: "if (attempt.state !== 'ending' && !(attempt.state === 'bound' && world.job.current !== attempt.token)) continue",
  },
  {
    what: 'a source’s machine is ended before the commit',
    file: `${engine}/moves.ts`,
    from: "  return move.kind === 'move'\n    ? commitMove",
    to: "  if (source.machineId !== null) await context.providers.get(source.offer.connection)?.end(source.machineId)\n  return move.kind === 'move'\n    ? commitMove",
  },
  {
    what: 'a new control plane forgets who runs',
    file: `${engine}/engine.ts`,
    from: 'const alive = await this.#context.store.attemptsAlive()\n    for',
    to: 'const alive = (await this.#context.store.attemptsAlive()).slice(0, 0)\n    for',
  },
  {
    what: 'unreachable is taken for dead',
    file: `${steps}/running.ts`,
    from: "if (leaseOver(seen, now)) return { do: 'lost'",
    to: "if (!leaseOver(seen, -Infinity)) return { do: 'lost'",
  },
  {
    what: 'a move is committed to a target that has not restored',
    file: `${steps}/moving.ts`,
    from: "if (seen.report?.phase === 'prepared') return { do: 'advance'",
    to: "if (seen.report?.phase !== 'ended') return { do: 'advance'",
  },
  {
    what: 'a resume is committed before it has restored',
    file: `${steps}/starting.ts`,
    from: "if (seen.report?.phase === 'prepared') return null",
    to: "if (seen.report?.phase !== 'ended') return null",
  },
  {
    what: 'an agent takes orders of older versions',
    file: 'src/agent/step.ts',
    from: ' || jobVersion < state.version',
    to: '',
  },
  {
    what: 'an agent starts a process without a lease',
    file: 'src/agent/step.ts',
    from: "return seen.lease === null ? wait() : { do: 'start' }",
    to: "return { do: 'start' }",
  },
  {
    what: 'an agent does not keep its promise to wait',
    file: 'src/agent/step.ts',
    from: 'if (state.promised === held.move || held.until === null)',
    to: 'if (held.until === null)',
  },
  {
    what: 'a lost job’s chain is not sealed',
    file: `${engine}/ends.ts`,
    from: 'const sealed = await context.chains.seal(job.id, job.lastSlot, `lost ${attempt.id}`)',
    to: 'const sealed = { sealedSlot: job.lastSlot, adopted: [] as never[], damaged: [] as never[] }',
  },
  {
    what: 'a move that is given up does not name the slot behind its seal',
    file: `${engine}/moves.ts`,
    from: "if (move?.step !== 'seal' || move.slot === null) return {}",
    to: 'if (move !== undefined) return {}',
  },
  {
    what: 'the control plane reckons leases shorter than machines do',
    file: 'src/core/jobs/spending.ts',
    from: 'Math.ceil(length * 1.01) + settings.leaseMargin',
    to: 'Math.ceil(length * 0.5) + 0 * settings.leaseMargin',
  },
  {
    what: 'money for a renewed lease is not counted at the connection',
    file: `${engine}/machines.ts`,
    from: 'commitMoney(attempt, more, more > 0)',
    to: 'commitMoney(attempt, 0 * more, more > 0)',
  },
  {
    what: 'money is settled without giving back what was set aside',
    file: `${engine}/machines.ts`,
    from: 'commitMoney(attempt, spent.micros - attempt.committed.micros)',
    to: 'commitMoney(attempt, spent.micros)',
  },
  {
    what: 'a machine is gone when it was not found once',
    file: 'src/core/jobs/world.ts',
    from: 'export const notFoundFor: Duration = 5 * 60_000',
    to: 'export const notFoundFor: Duration = 0',
  },
  {
    what: 'one listing without a machine is enough',
    file: `${engine}/world.ts`,
    from: 'if (at - since >= settles)',
    to: 'if (at - since >= 0 * settles)',
  },
  {
    what: 'a target is told to run when it is to restore',
    file: 'src/core/jobs/orders.ts',
    from: "return move.slot === null ? null : { do: 'prepare', start, slot: move.slot }",
    to: "return move.slot === null ? null : { do: 'run', start, slot: move.slot, aborted: null, lastSlot: job.lastSlot }",
  },
  {
    what: 'a stopped start leaves its machine',
    file: `${engine}/ends.ts`,
    from: '...world.attempts.filter(isHere).map(',
    to: '...world.attempts.filter((one) => isHere(one) && one.ranFrom !== null).map(',
  },
  {
    what: 'a job that was looked at is not due any more',
    file: `${engine}/engine.ts`,
    from: 'const due = Math.min(Math.max(until, now + 1000), never)',
    to: 'const due = never',
  },
  {
    what: 'a job that was looked at stays due',
    file: `${engine}/engine.ts`,
    from: 'if (job.due <= now) {',
    to: 'if (job.due < 0) {',
  },
  {
    what: 'a stop is overwritten by the next wish',
    file: 'src/control/api/jobs.ts',
    from: "if (!possible || job.wish?.to === 'stop') throw wrongState(job, 'suspend')",
    to: "if (!possible) throw wrongState(job, 'suspend')",
  },
  {
    what: 'an owned machine’s silence about an attempt that it was just given proves that it is gone',
    edits: [
      {
        file: `${steps}/leaving.ts`,
        from: 'seen.machine !== null && !seen.unanswered',
        to: 'seen.machine !== null',
      },
      {
        file: `${steps}/running.ts`,
        from: 'seen.connected && report === null && !seen.unanswered',
        to: 'seen.connected && report === null',
      },
    ],
  },
  {
    what: 'an owned machine is given up when it is silent',
    file: `${steps}/leaving.ts`,
    from: 'return leaseOver(seen, now)',
    to: 'return leaseOver(seen, Infinity)',
  },
]

/** The edits of a mutant, by file. */
export const editsOf = (mutant: Mutant): readonly Edit[] => ('edits' in mutant ? mutant.edits : [mutant])
