import { errors, type ErrorCode } from './errors.ts'

/** docs/errors.md: every error that a user can meet, from the one catalogue. `{name}` stands for a fact of the error. */
export const errorsPage = (): string =>
  [
    '# Errors',
    '',
    'Every error has a code, one sentence that says what happened, and one that says what to do. In `--json` and over HTTP:',
    '`{"error": {"code", "message", "advice", "facts"}}`. The exit code is the command line’s.',
    '',
    '| code | exit | what happened | what to do |',
    '|---|---|---|---|',
    ...(Object.keys(errors) as ErrorCode[]).toSorted().map((code) => {
      const { exit, message, advice } = errors[code]
      return `| \`${code}\` | ${exit} | ${cell(message)} | ${cell(advice)} |`
    }),
    '',
  ].join('\n')

const cell = (text: string): string => text.replaceAll('|', '\\|')
