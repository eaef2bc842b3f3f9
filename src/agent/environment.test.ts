import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findSdk, hashSeed, jobEnvironment, whyNotStart } from './environment.ts'

const job = { jobId: 'j1', jobName: 'nightly', env: {}, checkpoint: 'auto' } as const
const place = { token: 3, socket: '/s', flag: '/f', sdk: '/sdk' }

describe('the environment of a job', () => {
  test('is the machine’s, the job’s own over it, and what its SDK needs', () => {
    const env = jobEnvironment({ PATH: '/bin', A: '1', B: '2' }, { ...job, env: { B: '3' } }, place)
    expect(env).toMatchObject({
      PATH: '/bin',
      A: '1',
      B: '3',
      PORTAL_SOCKET: '/s',
      PORTAL_FLAG: '/f',
      PORTAL_JOB: 'nightly',
      PORTAL_ATTEMPT: '3',
      PYTHONPATH: '/sdk/python',
    })
  })

  test('keeps what the user set: paths behind ours, the seed and the buffering as they are', () => {
    const env = jobEnvironment(
      { PYTHONPATH: '/mine' },
      { ...job, env: { PYTHONHASHSEED: '0', PYTHONUNBUFFERED: '', NODE_OPTIONS: '--max-old-space-size=100' } },
      { ...place, sdk: findSdk(import.meta.dirname) },
    )
    expect(env['PYTHONPATH']).toMatch(/sdk\/python:\/mine$/)
    expect(env['PYTHONHASHSEED']).toBe('0')
    expect(env['PYTHONUNBUFFERED']).toBe('')
    expect(env['NODE_OPTIONS']).toMatch(/^--import=file:.*\/sdk\/node\/register\.mjs --max-old-space-size=100$/)
  })

  test('K-STRICT-6 the hash seed is one for all attempts of a job, another for another job', () => {
    expect(hashSeed('j1')).toBe(hashSeed('j1'))
    expect(hashSeed('j1')).not.toBe(hashSeed('j2'))
    expect(Number(hashSeed('j1'))).toBeGreaterThan(0)
  })

  test('a job may not be told another agent’s socket', () => {
    const env = jobEnvironment({ PORTAL_SOCKET: '/outer' }, { ...job, checkpoint: 'none' }, place)
    expect(Object.keys(env).filter((name) => name.startsWith('PORTAL_'))).toEqual([])
  })
})

describe('why a command cannot be started', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'portal-why-'))
    mkdirSync(join(folder, 'bin'))
    writeFileSync(join(folder, 'bin', 'tool'), '#!/bin/sh\n', { mode: 0o755 })
    writeFileSync(join(folder, 'script'), '#!/no/such/interpreter -x\n', { mode: 0o755 })
    writeFileSync(join(folder, 'plain'), '')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const why = (program: string, path = '/usr/bin:/bin') => whyNotStart([program], folder, { PATH: path })
  test.each([
    ['sh', null],
    ['./bin/tool', null],
    ['no-such-tool', /not found: no folder of PATH/],
    ['./nothing', /not found in the working directory/],
    ['./plain', /cannot be executed/],
    ['./script', /needs the interpreter \/no\/such\/interpreter/],
    ['', /not found/],
  ])('%s', (program, expected) => {
    expect(why(program) ?? 'nothing').toMatch(expected ?? /^nothing$/)
  })

  test('a relative folder of PATH is one of the working directory', () => {
    expect(why('tool', 'bin')).toBe(null)
  })

  test('the working directory is not there', () => {
    expect(whyNotStart(['sh'], join(folder, 'gone'), { PATH: '/bin' })).toMatch(/working directory .* is not there/)
  })
})
