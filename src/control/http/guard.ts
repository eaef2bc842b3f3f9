/** Who may call: the names that are answered to, the pages that may ask, and the tokens. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { portalError } from '../../contract/errors.ts'

const loopback = ['127.0.0.1', 'localhost', '[::1]'] as const

/**
 * Refuses a request by another host name than ours, or from a web page of elsewhere: a page whose name was made to point
 * to this address (DNS rebinding) would otherwise speak for the person who looks at it.
 */
export function guardOrigin(headers: IncomingHttpHeaders, hosts: readonly string[]): void {
  const host = headers.host ?? ''
  const known = [...loopback, ...hosts]
  if (!known.includes(hostnameOf(host))) throw portalError('wrong_host', { host: host || '(none)' })
  const { origin } = headers
  if (origin === undefined) return
  // its own pages only: the same name and port as it was asked by
  if (origin !== `http://${host}` && origin !== `https://${host}`) throw portalError('wrong_origin', { origin })
}

function hostnameOf(host: string): string {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d{1,5})?$/i.exec(host)
  return match?.[1]?.toLowerCase() ?? ''
}

/** The token that a request shows; null: none. */
export function bearerOf(headers: IncomingHttpHeaders): string | null {
  const match = /^bearer ([\x21-\x7e]{1,512})$/i.exec(headers.authorization ?? '')
  return match?.[1] ?? null
}

/** Compares in a time that tells nothing: neither where they differ nor how long the right one is. */
export function sameToken(shown: string, right: string): boolean {
  return timingSafeEqual(digest(shown), digest(right))
}

const digest = (text: string) => createHash('sha256').update(text).digest()
