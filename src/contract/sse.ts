/** One event of a stream, as it came. */
export interface RawEvent {
  readonly id: string | null
  readonly event: string
  readonly data: string
}

/** No event of Portal's is larger; more is not ours, and is not gathered without end. */
const eventLimit = 4 * 1024 * 1024

/**
 * Reads server-sent events out of pieces of text, as they come. Yields null for a comment: a sign of life.
 * Throws a RangeError when an event has no end within 4 Mi characters.
 */
export async function* readEvents(pieces: AsyncIterable<string>): AsyncGenerator<RawEvent | null> {
  let rest = ''
  let id: string | null = null
  let event = 'message'
  let data: string[] = []
  let size = 0
  for await (const piece of pieces) {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ''
    for (const line of lines) {
      size += line.length
      if (line === '') {
        if (data.length > 0) yield { id, event, data: data.join('\n') }
        event = 'message'
        data = []
        size = 0
      } else if (line.startsWith(':')) {
        yield null
      } else {
        const colon = line.indexOf(':')
        const field = colon < 0 ? line : line.slice(0, colon)
        const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
        if (field === 'data') data.push(value)
        else if (field === 'event') event = value
        else if (field === 'id' && !value.includes('\0')) id = value
      }
    }
    if (size + rest.length > eventLimit) throw new RangeError(`an event of more than ${eventLimit} characters`)
  }
}
