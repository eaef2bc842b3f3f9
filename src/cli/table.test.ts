import { expect, test } from 'vitest'
import { columnsOf, facts, table, type Column } from './table.ts'

interface Row {
  readonly name: string
  readonly price: string | null
  readonly note?: string
}
const columns: readonly Column<Row>[] = [
  { title: 'NAME', cell: (row) => row.name, shrinkTo: 6 },
  { title: 'PRICE', cell: (row) => row.price, align: 'right' },
  { title: 'NOTE', cell: (row) => row.note },
]

const paint = (text: string) => `\u001b[31m${text}\u001b[39m`

test('columns are aligned, empty ones are left out, no line ends in spaces', () => {
  const text = table(
    [
      { name: 'a', price: '1' },
      { name: 'longer', price: null },
    ],
    columns,
    { width: null },
  )
  expect(text).toBe('NAME    PRICE\na           1\nlonger      -')
})

test('without rows the titles stand alone', () => {
  expect(table([], columns, { width: null })).toBe('NAME  PRICE  NOTE')
})

test('colours do not count as letters', () => {
  const text = table(
    [{ name: 'a', price: '1' }],
    [{ ...(columns[0] as Column<Row>), paint }, columns[1] as Column<Row>],
    { width: null },
  )
  expect(text.split('\n')[1]).toBe('\u001b[31ma\u001b[39m         1')
})

test('a narrow terminal shortens what may be shortened', () => {
  const text = table([{ name: 'a-very-long-name', price: '12.50' }], columns, { width: 15 })
  expect(text.split('\n')[1]).toBe('a-very-…  12.50')
})

test('the last columns are shortened first', () => {
  const two = [...columns.slice(0, 1), { title: 'NOTE', cell: (row: Row) => row.note, shrinkTo: 5 }]
  const text = table([{ name: 'a-long-name', price: null, note: 'a long note' }], two, { width: 20 })
  expect(text.split('\n')[1]).toBe('a-long-name  a long…')
})

test('a hostile name cannot break the table', () => {
  const text = table([{ name: 'a\nb\u001b[2J', price: '1' }], columns, { width: null })
  expect(text.split('\n')).toHaveLength(2)
  expect(text).toContain('a\\nb\\x1b[2J')
})

test('wide letters take two columns, combining marks none', () => {
  expect(columnsOf('日本')).toBe(4)
  expect(columnsOf('e\u0301')).toBe(1)
  const text = table(
    [
      { name: '日本', price: '1' },
      { name: 'abcd', price: '2' },
    ],
    columns,
    { width: null },
  )
  expect(text.split('\n')[1]).toBe('日本      1')
})

test('facts align their names and leave out what is empty', () => {
  expect(
    facts([
      ['state', 'running'],
      ['checkpoint', '3'],
      ['exit', null],
      ['on', ''],
    ]),
  ).toBe('state       running\ncheckpoint  3')
})
