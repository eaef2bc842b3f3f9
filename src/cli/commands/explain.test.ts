import { expect, test } from 'vitest'
import type { DecisionView, ExplainView } from '../../contract/schemas.ts'
import { makeContext } from '../context.ts'
import { render } from './explain.ts'

const sink = { write: () => true } as unknown as NodeJS.WriteStream
const cli = await makeContext({ stdout: sink, stderr: sink }, { NO_COLOR: '1' }, '/', new AbortController().signal)

const decision = (policy: string, outcome: DecisionView['outcome'], at: number, says: string): DecisionView => ({
  id: `${policy}-${at}`,
  policy,
  outcome,
  count: 1,
  firstAt: at,
  lastAt: at,
  lookAgainAt: null,
  why: { code: 'spot.quiet', sentence: says, facts: {} },
})
const explained: ExplainView = {
  job: 'j1',
  name: 'nightly',
  sentence: 'nightly runs',
  decisions: [
    decision('lease', 'rested', 1, 'lease one'),
    decision('lease', 'acted', 2, 'lease two'),
    decision('lease', 'rested', 3, 'lease three'),
    decision('spot', 'rested', 1, 'spot one'),
    decision('spot', 'rested', 4, 'spot four'),
  ],
  events: [],
  next: null,
} as unknown as ExplainView
const told = (all: boolean) => render(cli, explained, { facts: false, all }).match(/(?:lease|spot) [a-z]+$/gm)

test('what was done is shown, and of each policy the last look at which nothing was to be done', () => {
  expect(told(false)).toEqual(['spot four', 'lease three', 'lease two'])
  expect(render(cli, explained, { facts: false, all: false })).toContain(
    '… and 2 earlier looks at which nothing was to be done (--all)',
  )
})

test('with --all every look is shown, and nothing is said to be missing', () => {
  expect(told(true)).toHaveLength(5)
  expect(render(cli, explained, { facts: false, all: true })).not.toContain('earlier')
})
