import { expect, test } from 'vitest'
import { errors, portalError, portalErrorFrom, PortalError } from './errors.ts'

test('an error of the catalogue tells what happened and what to do, from its facts', () => {
  const error = portalError('checkpoint_refused', { job: 'nightly', count: 2, refused: [{ path: 'state.sock' }] })
  expect(error).toBeInstanceOf(PortalError)
  expect(error.message).toBe('nightly stays where it is and runs on: a checkpoint cannot carry 2 of its values')
  expect(error).toMatchObject({ status: 409, exitCode: 3, facts: { refused: [{ path: 'state.sock' }] } })
})

test('a fact is never a template of its own', () => {
  expect(portalError('job_not_found', { ref: '{nearest}', nearest: 'a' }).message).toBe('there is no job {nearest}')
})

test('an error comes off the wire as it went on', () => {
  const sent = portalError('job_not_found', { ref: 'x', nearest: ['nightly', 'noon'] })
  const back = portalErrorFrom(JSON.parse(JSON.stringify(sent)), sent.status, 'http://127.0.0.1:1')
  expect({ ...back, message: back.message }).toEqual({ ...sent, message: sent.message })
})

test('a code of a newer control plane keeps its sentences', () => {
  const body = { error: { code: 'moon_full', message: 'the moon is full', advice: 'Wait.', facts: {} } }
  expect(portalErrorFrom(body, 409, 'u')).toMatchObject({ code: 'moon_full', message: 'the moon is full', exitCode: 2 })
})

test('what is no error of Portal is named as such', () => {
  for (const body of [null, 'x', [], {}, { error: 1 }, { error: { code: 1 } }])
    expect(portalErrorFrom(body, 502, 'http://h')).toMatchObject({ code: 'protocol_unknown', exitCode: 1 })
})

test.for(Object.entries(errors))('%s says what happened and what to do, in sentences', ([code, entry]) => {
  expect(code).toMatch(/^[a-z_]+$/)
  expect(entry.message).toMatch(/^[^.].*[^.]$/)
  expect(entry.advice).toMatch(/[.}]$/)
  expect(entry.status).toBeGreaterThanOrEqual(400)
})
