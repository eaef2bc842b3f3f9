/** What every benchmark ends with: a row for each figure, shown as a table, or with `--json` as data for `npm run bench`. */

export interface Row {
  readonly what: string
  /** the figure, with its unit */
  readonly seen: string
  /** what it should be; null: it is only told */
  readonly goal: string | null
  /** null: it is only told */
  readonly ok: boolean | null
  /** what keeps it from being better, as far as known */
  readonly limits?: string
}

/** Only told: nothing is promised of it. */
export const told = (what: string, seen: string, limits?: string): Row => ({
  what,
  seen,
  goal: null,
  ok: null,
  ...(limits === undefined ? {} : { limits }),
})

/** Measured against a goal. `unit` stands behind both numbers. */
export const atMost = (what: string, value: number, goal: number, unit: string, limits?: string): Row => ({
  what,
  seen: `${rounded(value)} ${unit}`,
  goal: `≤ ${goal} ${unit}`,
  ok: value <= goal,
  ...(limits === undefined ? {} : { limits }),
})

/** Three digits are as much as is repeatable. */
export const rounded = (value: number): string =>
  Math.abs(value) >= 100
    ? value.toFixed(0)
    : Math.abs(value) >= 10
      ? value.toFixed(1)
      : Math.abs(value) >= 1
        ? value.toFixed(2)
        : value.toPrecision(2)

export const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * q)] ?? NaN

export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** Ends a benchmark: prints its rows, and fails it where a goal is missed. */
export const tell = (rows: readonly Row[]): void => {
  if (process.argv.includes('--json')) console.log(JSON.stringify(rows))
  else console.log(table(rows))
  if (rows.some(({ ok }) => ok === false)) process.exitCode = 1
}

/** Numbers among the arguments, flags left out. */
export const numbers = (): readonly number[] =>
  process.argv
    .slice(2)
    .filter((word) => !word.startsWith('--'))
    .map(Number)

export const mark = ({ ok }: Row): string => (ok === null ? '' : ok ? 'yes' : 'NO')

export const table = (rows: readonly Row[]): string => {
  const cells = rows.map((row) => [row.what, row.seen, row.goal ?? '', mark(row)])
  const lines = [['what', 'seen', 'goal', 'ok'], ...cells]
  const widths = [0, 1, 2].map((column) => Math.max(...lines.map((line) => [...(line[column] ?? '')].length)))
  return lines
    .map((line) =>
      line.map((cell, n) => cell + ' '.repeat(Math.max(0, (widths[n] ?? 0) - [...cell].length))).join('  '),
    )
    .map((line) => line.trimEnd())
    .join('\n')
}
