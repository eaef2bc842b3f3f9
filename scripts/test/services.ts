import { spawnSync } from 'node:child_process'
import { whyNoSmallDisk } from '../../test/support/disk.ts'
import { whyNoPostgres } from '../../test/support/postgres.ts'

export interface Missing {
  /** what cannot be tested here, and why */
  readonly what: string
  /** how to get it */
  readonly cure: string
}

/** What tests would use and this machine does not have. Everything else is tested all the same. */
export function missingServices(): readonly Missing[] {
  const postgres = whyNoPostgres()
  const disk = whyNoSmallDisk()
  return [
    works('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))'])
      ? null
      : { what: 'the Python SDK (no python3 of 3.9 or newer)', cure: 'apt-get install python3' },
    postgres === null ? null : { what: `the store on PostgreSQL (${postgres})`, cure: 'then run the tests again' },
    works('unshare', ['--pid', '--fork', '--kill-child', '--mount-proc', 'true']) ||
    works('unshare', ['--user', '--map-root-user', '--pid', '--fork', '--kill-child', '--mount-proc', 'true'])
      ? null
      : {
          what: 'jobs that no double fork gets out of (no PID namespaces)',
          cure: 'run the tests as root, or permit user namespaces: sysctl kernel.unprivileged_userns_clone=1',
        },
    disk === null ? null : { what: `a full disk (${disk})`, cure: 'run the tests as root' },
  ].filter((one) => one !== null)
}

function works(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore', timeout: 10_000 }).status === 0
}
