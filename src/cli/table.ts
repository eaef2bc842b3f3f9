import { stripVTControlCharacters } from 'node:util'
import { plain } from './format.ts'

export interface Column<Row> {
  readonly title: string
  /** the cell; what came from elsewhere goes through `plain` here already */
  readonly cell: (row: Row) => string | null | undefined
  readonly align?: 'left' | 'right'
  /** given after the widths are known, so that colours do not count as letters */
  readonly paint?: (text: string, row: Row) => string
  /** narrowed first when the terminal is too narrow; down to this many columns */
  readonly shrinkTo?: number
}

export interface TableOptions {
  /** columns of the terminal; null: as wide as it takes */
  readonly width: number | null
  readonly title?: (text: string) => string
  readonly indent?: string
}

const gap = '  '

/** A small aligned table, one line a row, without borders. Empty columns are left out; an empty cell shows `-`. */
export const table = <Row>(rows: readonly Row[], columns: readonly Column<Row>[], options: TableOptions): string => {
  const cells = rows.map((row) => columns.map((column) => plain(column.cell(row) ?? '')))
  const used = columns
    .map((column, index) => ({ column, index }))
    .filter(({ index }) => rows.length === 0 || cells.some((line) => line[index] !== ''))
  const widths = new Map(
    used.map(({ column, index }) => [
      index,
      Math.max(column.title.length, ...cells.map((line) => columnsOf(line[index] || '-'))),
    ]),
  )
  const indent = options.indent ?? ''
  if (options.width !== null) narrow(used, widths, options.width - indent.length)

  const render = (line: readonly string[], paint: (text: string, column: Column<Row>) => string) =>
    indent +
    used
      .map(({ column, index }, position) => {
        const width = widths.get(index) as number
        const text = fit(line[index] || '-', width)
        const space = ' '.repeat(Math.max(0, width - columnsOf(text)))
        const painted = paint(text, column)
        if (column.align === 'right') return space + painted
        return position === used.length - 1 ? painted : painted + space
      })
      .join(gap)
      .trimEnd()

  const title = options.title ?? ((text: string) => text)
  const head = render(
    columns.map(({ title: text }) => text),
    (text) => title(text),
  )
  const body = rows.map((row, at) =>
    render(cells[at] as string[], (text, column) => (column.paint ? column.paint(text, row) : text)),
  )
  return [head, ...body].join('\n')
}

const narrow = <Row>(
  used: readonly { readonly column: Column<Row>; readonly index: number }[],
  widths: Map<number, number>,
  width: number,
): void => {
  let over = [...widths.values()].reduce((sum, w) => sum + w, 0) + gap.length * (used.length - 1) - width
  // what stands last matters least
  for (const { column, index } of used.toReversed()) {
    if (over <= 0) return
    const now = widths.get(index) as number
    const least = Math.min(now, Math.max(column.shrinkTo ?? now, column.title.length))
    const taken = Math.min(over, now - least)
    widths.set(index, now - taken)
    over -= taken
  }
}

/** Columns that a text takes in a terminal: wide letters take two, combining marks none. */
export const columnsOf = (text: string): number => {
  if (/^[\x20-\x7e…]*$/.test(text)) return text.length
  let width = 0
  for (const character of stripVTControlCharacters(text)) {
    if (/\p{Mn}|\p{Me}|\u200d|\ufe0f/u.test(character)) continue
    width +=
      /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Emoji_Presentation}|[\uff01-\uff60]/u.test(
        character,
      )
        ? 2
        : 1
  }
  return width
}

const fit = (text: string, width: number): string => {
  if (columnsOf(text) <= width) return text
  let kept = ''
  for (const character of text) {
    if (columnsOf(kept) + columnsOf(character) > width - 1) break
    kept += character
  }
  return `${kept}…`
}

/** `name   value` lines, the names aligned. */
export const facts = (
  pairs: readonly (readonly [name: string, value: string | null | undefined])[],
  paint: (name: string) => string = (name) => name,
): string => {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '')
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `${paint(name.padEnd(width))}${gap}${value as string}`).join('\n')
}
