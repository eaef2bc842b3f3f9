import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { money } from '../../../src/core/money/index.ts'
import { minute } from '../../../src/core/time/index.ts'
import type { StartRequest } from '../../../src/providers/port.ts'

export const agentEntry = fileURLToPath(new URL('fake-agent.ts', import.meta.url))

export const startRequest: StartRequest = {
  rowId: 'job1.1',
  installation: 'installation-1',
  offer: {
    id: 'this-machine',
    connection: 'this-machine',
    provider: 'this-machine',
    region: '',
    zone: '',
    type: 'this-machine',
    market: 'owned',
    price: money(0),
    notice: null,
    lifetime: null,
    cpus: 1,
    memoryBytes: 2 ** 30,
    gpus: null,
  },
  needs: { cpus: 1, memoryBytes: 2 ** 27, diskBytes: 0, gpus: null, image: null },
  bootstrap: {
    agentId: 'agent-1',
    url: 'http://127.0.0.1:1',
    token: 'a token that only this machine knows',
    checkin: 15 * minute,
    checkpoints: { directory: '/nowhere' },
  },
  hardStopAfter: 60 * minute,
}

/** The processes whose environment or command names this folder: all that a test in it can have started. */
export function processesOf(folder: string): readonly number[] {
  const mentions = (pid: string): boolean => {
    try {
      if (readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')) return false
      return ['environ', 'cmdline'].some((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8').includes(folder))
    } catch {
      return false
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid && mentions(name))
    .map(Number)
}

/** Those of them that the fake agent of this machine itself left running, a session of their own each. */
export function strays(home: string): readonly number[] {
  const file = join(home, 'agents', 'this-machine', 'stray.pid')
  return existsSync(file) ? [Number(readFileSync(file, 'utf8'))] : []
}

/** Ends what tests leave running on purpose: what outlives an agent. */
export async function endStrays(home: string): Promise<void> {
  for (const pid of processesOf(home)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // it ended meanwhile
    }
  }
}

export const practiceEntry = fileURLToPath(new URL('../../../src/providers/practice/cloud/main.ts', import.meta.url))
