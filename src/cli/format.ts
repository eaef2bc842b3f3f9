/** How amounts, times and names are written for people. Pure: the time now and the zone are arguments. */

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** `0 B`, `900 KiB`, `1.5 GiB`: three figures at most. */
export const size = (bytes: number): string => {
  let value = Math.max(0, bytes)
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  const text = unit === 0 || value >= 99.95 ? value.toFixed(0) : value >= 9.95 ? value.toFixed(1) : value.toFixed(2)
  return `${text.includes('.') ? text.replace(/\.?0+$/, '') : text} ${units[unit] as string}`
}

/** A length of time in ms: `40 ms`, `1.2 s`, `42 s`, `3 min 05 s`, `2 h 10 min`, `3 d 4 h`. */
export const duration = (ms: number): string => {
  const length = Math.max(0, ms)
  if (length < 1000) return `${Math.round(length)} ms`
  if (length < 9950) return `${(length / 1000).toFixed(1)} s`
  const seconds = Math.round(length / 1000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return join(Math.floor(seconds / 60), 'min', seconds % 60, 's')
  const minutes = Math.round(length / 60_000)
  if (minutes < 24 * 60) return join(Math.floor(minutes / 60), 'h', minutes % 60, 'min')
  const hours = Math.round(length / 3_600_000)
  return join(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

const join = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${String(small).padStart(2, '0')} ${smallUnit}`

/**
 * `now`, `40 s ago`, `3 min ago`, `2 h ago`, `in 5 min`: one unit only, since it is read at a glance. What is over is counted in
 * whole units, what is to come in the nearest: what is kept for three days is kept until `in 3 d`, a moment later too.
 */
export const ago = (at: number, now: number): string => {
  const length = Math.abs(now - at)
  if (length < 1000) return 'now'
  const text = at <= now ? coarse(length) : coarse(length, Math.round)
  return at <= now ? `${text} ago` : `in ${text}`
}

/** A length of time in one unit: `40 s`, `3 min`, `2 h`, `9 d`. */
export const coarse = (ms: number, whole: (figure: number) => number = Math.floor): string => {
  const seconds = whole(Math.max(0, ms) / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = whole(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = whole(seconds / 3600)
  return hours < 48 ? `${hours} h` : `${whole(seconds / 86_400)} d`
}

/** `14:03:22` today, else `2026-12-01 14:03:22`, in the machine's own zone. */
export const clock = (at: number, now: number): string => {
  const date = new Date(at)
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')
  if (new Date(now).toDateString() === date.toDateString()) return time
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`
}

const two = (n: number): string => String(n).padStart(2, '0')

/** Money from the wire with as many places as it takes to see it: `12.50 USD`, `0.0031 USD`, `0 USD`; small amounts rounded up. */
export const money = ({ amount, currency }: { readonly amount: string; readonly currency: string }): string => {
  const number = Number(amount)
  const far = Math.abs(number)
  if (far === 0) return `0 ${currency}`
  if (far >= 0.995) return `${number.toFixed(2)} ${currency}`
  if (far < 0.0001) return `<0.0001 ${currency}`
  const scale = 10 ** Math.min(6, 1 - Math.floor(Math.log10(far)))
  const rounded = (Math.sign(number) * Math.ceil(far * scale - 1e-6)) / scale
  return `${rounded.toFixed(6).replace(/(\.\d\d\d*?)0+$/, '$1')} ${currency}`
}

/** A price of an hour, to be read below others: three places always, more where it takes them. */
export const price = (each: { readonly amount: string; readonly currency: string }): string => {
  const number = Number(each.amount)
  return number === 0 || number >= 0.001 ? `${number.toFixed(3)} ${each.currency}` : money(each)
}

/** `1 job`, `3 jobs`. */
export const count = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`

/**
 * Text that came from elsewhere, safe to print: what would steer a terminal (escapes, returns, bidirectional overrides)
 * is shown as `\x1b`, never sent.
 */
export const plain = (text: string): string =>
  text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    const code = character.codePointAt(0) as number
    return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })

/** Shortens to `width` columns, with an ellipsis. */
export const clip = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`

/** A command as it would be typed into a shell. */
export const shellWords = (command: readonly string[]): string =>
  command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ')
