import { errors } from '../../src/contract/errors.ts'

const exits: Readonly<Record<number, string>> = {
  1: 'failed',
  2: 'typed wrong',
  3: 'refused',
  4: 'not there',
  5: 'not reachable',
}

const begin = '<!-- from the catalogue: node scripts/docs-errors.ts -->'
const end = '<!-- end -->'

/** The page with the table of every error as the catalogue has it now. */
export function withErrors(page: string): string {
  const before = page.slice(0, page.indexOf(begin) + begin.length)
  const after = page.slice(page.indexOf(end))
  return `${before}\n\n${table()}\n\n${after}`
}

function table(): string {
  const rows = Object.entries(errors).map(
    ([code, { exit, message, advice }]) =>
      `| \`${code}\` | ${exit} ${exits[exit] ?? ''} | ${cell(message)} | ${cell(advice)} |`,
  )
  return ['| code | exit code | what happened | what to do |', '|---|---|---|---|', ...rows].join('\n')
}

/** `{name}` is what the error fills in. */
const cell = (text: string): string =>
  text.replaceAll('|', '\\|').replaceAll(/\{(\w+)\}/g, (_, name: string) => name.replaceAll('_', ' ').toUpperCase())
