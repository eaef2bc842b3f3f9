import type { DecisionView, ExplainView } from '../../contract/schemas.ts'
import type { Cli } from '../context.ts'
import { reach } from '../control/reach.ts'
import { define, flag, json } from '../define.ts'
import { ago, clock, coarse, count, plain } from '../format.ts'
import { jobArgument } from '../jobs.ts'
import { table } from '../table.ts'

interface Flags {
  readonly facts?: boolean
  readonly all?: boolean
  readonly json?: boolean
}

export const command = define<Flags, [string]>({
  brief: 'Say why a job is where it is',
  about:
    'Says in one sentence why a job is where it is, then shows what was decided about it and what happened, with its numbers. Of the looks at which a policy found nothing to do, the last one of each is shown; --all shows every one.',
  examples: [
    ['portal explain nightly', 'the sentence, the decisions, what comes next'],
    ['portal explain nightly --facts', 'every number behind each decision'],
    ['portal explain nightly --all', 'the looks too at which nothing was to be done'],
  ],
  parameters: {
    flags: {
      facts: flag('every number behind each decision'),
      all: flag('every look, those too at which nothing was to be done'),
      json,
    },
    positional: { kind: 'tuple', parameters: [jobArgument] },
  },
  async run(cli, flags, ref) {
    const client = await reach(cli)
    const explanation = await client.explain({ params: { ref } })
    if (flags.json) cli.json(explanation)
    else cli.print(render(cli, explanation, { facts: flags.facts === true, all: flags.all === true }))
  },
})

/** The sentence first, then decisions, what happened, and what is looked at next. */
export const render = (
  cli: Cli,
  { name, sentence, decisions, events, next }: ExplainView,
  shown: { readonly facts: boolean; readonly all: boolean },
): string => {
  const now = cli.now()
  const { bold, dim } = cli.colors
  const parts = [sentence.startsWith(name) ? plain(sentence) : `${bold(plain(name))}: ${plain(sentence)}`]
  if (decisions.length > 0) {
    const told = shown.all ? decisions : worthTelling(decisions)
    const left = decisions.length - told.length
    const rest =
      left === 0 ? '' : dim(`\n  … and ${count(left, 'earlier look')} at which nothing was to be done (--all)`)
    parts.push(`${bold('decisions')}, newest first\n${decisionTable(cli, told, shown.facts)}${rest}`)
  }
  const told = events.filter(({ kind, why }) => why !== null || kind !== 'move.step')
  if (told.length > 0)
    parts.push(
      `${bold('what happened')}, oldest first\n${table(
        told,
        [
          { title: 'WHEN', cell: ({ at }) => clock(at, now) },
          { title: 'WHAT', cell: ({ kind }) => kind },
          { title: 'BY', cell: ({ by }) => by, shrinkTo: 8 },
          { title: 'WHY', cell: ({ why }) => why?.sentence },
        ],
        { width: null, title: dim, indent: '  ' },
      )}`,
    )
  if (next) parts.push(`${bold('next')} ${ago(next.at, now)}: ${plain(next.policies.join(', '))}`)
  return parts.join('\n\n')
}

/** What was done, refused or warned of, and of each policy the last time that it found nothing to do. */
const worthTelling = (decisions: readonly DecisionView[]): readonly DecisionView[] => {
  const last = new Map<string, DecisionView>()
  for (const one of decisions) if (one.lastAt >= (last.get(one.policy)?.lastAt ?? -Infinity)) last.set(one.policy, one)
  return decisions.filter((one) => one.outcome !== 'rested' || last.get(one.policy) === one)
}

const decisionTable = (cli: Cli, decisions: readonly DecisionView[], withFacts: boolean): string => {
  const now = cli.now()
  const { dim } = cli.colors
  const sorted = decisions.toSorted((a, b) => b.lastAt - a.lastAt)
  const lines = table(
    sorted,
    [
      { title: 'WHEN', cell: ({ lastAt }) => clock(lastAt, now) },
      { title: 'POLICY', cell: ({ policy }) => policy },
      { title: 'OUTCOME', cell: ({ outcome }) => outcome, paint: (text) => paintOutcome(cli, text) },
      {
        title: 'TIMES',
        cell: ({ count, firstAt, lastAt }) => (count === 1 ? '1' : `${count} in ${coarse(lastAt - firstAt)}`),
        align: 'right',
      },
      {
        title: 'AGAIN',
        cell: ({ lookAgainAt }) => (lookAgainAt === null || lookAgainAt < now ? null : ago(lookAgainAt, now)),
      },
      { title: 'WHY', cell: ({ why }) => why.sentence },
    ],
    { width: null, title: dim, indent: '  ' },
  ).split('\n')
  if (!withFacts) return lines.join('\n')
  return lines
    .flatMap((line, index) =>
      index === 0
        ? [line]
        : [line, ...factLines(sorted[index - 1] as DecisionView).map((fact) => dim(`      ${fact}`))],
    )
    .join('\n')
}

const factLines = ({ why }: DecisionView): readonly string[] =>
  Object.entries(why.facts).map(([name, fact]) =>
    plain(`${name}  ${typeof fact === 'string' ? fact : JSON.stringify(fact)}`),
  )

const paintOutcome = (cli: Cli, outcome: string): string => {
  const { green, red, yellow, dim } = cli.colors
  const bare = outcome.trim()
  if (bare === 'acted') return green(outcome)
  if (bare === 'refused') return red(outcome)
  return bare === 'warned' ? yellow(outcome) : dim(outcome)
}
