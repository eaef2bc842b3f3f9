import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Listens where the control plane before this one listened: agents were told once, on machines that nobody reaches but
 * through them, and look for it there. Only where somebody else has taken that port meanwhile another one is drawn.
 *
 * @param asked a port that a person asked for; 0: none
 * @returns what `listen` gave, and whether agents of before look elsewhere
 */
export async function listenAgain<T extends { readonly url: string }>(
  home: string,
  asked: number,
  listen: (port: number) => Promise<T>,
): Promise<{ readonly server: T; readonly movedFrom: number | null }> {
  const file = join(home, 'serve.port')
  const before = Number(await readFile(file, 'utf8').catch(() => '')) || 0
  const wanted = asked === 0 ? before : asked
  const server = await listen(wanted).catch((error: unknown) => {
    if (asked === 0 && wanted !== 0 && isTaken(error)) return listen(0)
    throw error
  })
  const port = Number(new URL(server.url).port)
  if (port !== before) {
    await writeFile(`${file}.new`, String(port), { mode: 0o600 })
    await rename(`${file}.new`, file)
  }
  return { server, movedFrom: before === 0 || before === port ? null : before }
}

const isTaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'EADDRINUSE' || error.code === 'EACCES')
