import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const python = ['python3', 'python'].find((name) => {
  const asked = spawnSync(name, ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))'])
  return asked.status === 0
})
if (python === undefined) console.warn('skipped: no python3 of 3.9 or newer here, so the Python SDK is not tested')

test.skipIf(python === undefined)(
  'K-PY, K-STRICT, K-WHOLE: the Python SDK passes its own tests',
  { timeout: 600_000 },
  () => {
    const done = spawnSync(python ?? '', ['-m', 'unittest', 'discover', '-t', '.', '-s', 'tests'], {
      cwd: new URL('../../sdk/python', import.meta.url),
      encoding: 'utf8',
    })
    expect(done.stderr).toMatch(/Ran [1-9]\d* tests/)
    expect({ status: done.status, said: done.stderr }).toMatchObject({ status: 0 })
  },
)
