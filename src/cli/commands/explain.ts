import type { DecisionView, ExplainView } from '../../contract/schemas.ts'
import type { Cli } from '../context.ts'
import { reach } from '../control/reach.ts'
import { define, flag, json } from '../define.ts'
import { ago, clock, coarse, plain } from '../format.ts'
import { jobArgument } from '../jobs.ts'
import { table } from '../table.ts'

interface Flags {
  readonly facts?: boolean
  readonly json?: boolean
}

export const command = define<Flags, [string]>({
  brief: 'Say why a job is where it is',
  about: 'Says in one sentence why a job is where it is, then shows every decision about it with its numbers.',
  examples: [
    ['portal explain nightly', 'the sentence, the decisions, what comes next'],
    ['portal explain nightly --facts', 'every number behind each decision'],
  ],
  parameters: {
    flags: { facts: flag('every number behind each decision'), json },
    positional: { kind: 'tuple', parameters: [jobArgument] },
  },
  async run(cli, flags, ref) {
    const client = await reach(cli)
    const explanation = await client.explain({ params: { ref } })
    if (flags.json) cli.json(explanation)
    else cli.print(render(cli, explanation, flags.facts === true))
  },
})

/** The sentence first, then decisions, what happened, and what is looked at next. */
export const render = (
  cli: Cli,
  { name, sentence, decisions, events, next }: ExplainView,
  withFacts: boolean,
): string => {
  const now = cli.now()
  const { bold, dim } = cli.colors
  const parts = [sentence.startsWith(name) ? plain(sentence) : `${bold(plain(name))}: ${plain(sentence)}`]
  if (decisions.length > 0)
    parts.push(`${bold('decisions')}, newest first\n${decisionTable(cli, decisions, withFacts)}`)
  const told = events.filter(({ why }) => why !== null)
  if (told.length > 0)
    parts.push(
      `${bold('what happened')}\n${table(
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
