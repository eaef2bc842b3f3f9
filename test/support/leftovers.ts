import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Processes that name a folder on their command line or in their environment. Linux only: elsewhere none are known. */
export const processesNaming = (folder: string): readonly { readonly pid: number; readonly command: string }[] => {
  let pids: readonly number[]
  try {
    pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {
    return []
  }
  return pids.flatMap((pid) => {
    const command = readOr(`/proc/${pid}/cmdline`)
    const named = pid !== process.pid && `${command}${readOr(`/proc/${pid}/environ`)}`.includes(folder)
    return named ? [{ pid, command: command.replaceAll('\0', ' ').trim() }] : []
  })
}

/**
 * Ends them, in peace for three seconds, then at once: what outlives a control plane by design, this machine's agent and
 * the practice cloud, when it is not to outlive a test.
 *
 * @returns those that are still there
 */
export const endProcessesNaming = async (folder: string): Promise<ReturnType<typeof processesNaming>> => {
  for (let tries = 0; tries < 50; tries++) {
    const left = processesNaming(folder)
    if (left.length === 0) return []
    for (const { pid } of left) kill(pid, tries < 30 ? 'SIGTERM' : 'SIGKILL')
    await sleep(100)
  }
  return processesNaming(folder)
}

const readOr = (file: string): string => {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

const kill = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch {
    // it has gone meanwhile
  }
}
