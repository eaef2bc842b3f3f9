import { randomBytes } from 'node:crypto'
import { userInfo } from 'node:os'
import type { Clock, Random } from './ports.ts'

/** setTimeout takes no more than this; longer waits are asked for again. */
const longest = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delay, then) {
    const timer = setTimeout(then, Math.min(Math.max(0, delay), longest))
    timer.unref()
    return { cancel: () => clearTimeout(timer) }
  },
}

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

export const systemRandom: Random = {
  letters: (count) => Array.from(randomBytes(count), (byte) => alphabet[byte % 32]).join(''),
}

/** By which name a person's acts are recorded; in containers a user often has none. */
export const userName = (): string => {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.() ?? ''}`.trim()
  }
}
