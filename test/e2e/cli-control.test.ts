import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isAlive } from '../../src/cli/control/reach.ts'
import { patient, Person } from '../support/portal.ts'

let person: Person
beforeEach(() => void (person = new Person()))
afterEach(async () => {
  await person.run(['serve', 'stop'])
  person.remove()
})

test('a control plane is started when none runs, found again, and ended', async () => {
  expect((await person.run(['serve', 'status'])).code).toBe(5)
  const first = await person.run(['ps', '--json'])
  expect(JSON.parse(first.stdout)).toEqual({ jobs: [], more: false })
  const pid = person.servingPid() as number
  const status = await person.run(['serve', 'status', '--json'])
  expect(JSON.parse(status.stdout)).toMatchObject({ ok: true, pid, home: person.home })
  expect((await person.run(['serve'])).stderr).toContain('already')
  expect((await person.run(['serve', 'stop'])).code).toBe(0)
  expect(isAlive(pid)).toBe(false)
  expect((await person.run(['serve', 'stop'])).code).toBe(5)
})

test('two commands that start at once end up on one control plane', async () => {
  const both = await Promise.all([person.run(['ps']), person.run(['connections']), person.run(['offers'])])
  expect(both.map(({ code }) => code)).toEqual([0, 0, 0])
  const log = readFileSync(join(person.home, 'serve.log'), 'utf8')
  expect(log.match(/the control plane serves/g)).toHaveLength(1)
})

test('one that was killed is replaced, and a damaged note of it is no hindrance', async () => {
  await person.run(['serve', '--detach'])
  const pid = person.servingPid() as number
  process.kill(pid, 'SIGKILL')
  await expect.poll(() => isAlive(pid), patient).toBe(false)
  expect((await person.run(['ps'])).code).toBe(0)
  const next = person.servingPid() as number
  expect(next).not.toBe(pid)
  process.kill(next, 'SIGKILL')
  await expect.poll(() => isAlive(next), patient).toBe(false)
  writeFileSync(join(person.home, 'serve.json'), '{"url":')
  expect((await person.run(['ps'])).code).toBe(0)
})

test('an older control plane is replaced in peace, a newer one is used as it is', async () => {
  await person.run(['serve', '--detach'])
  const note = join(person.home, 'serve.json')
  const serving = JSON.parse(readFileSync(note, 'utf8')) as { pid: number }
  writeFileSync(note, JSON.stringify({ ...serving, version: '99.0.0' }))
  expect((await person.run(['ps'])).code).toBe(0)
  expect(person.servingPid()).toBe(serving.pid)
  writeFileSync(note, JSON.stringify({ ...serving, version: '0.0.1' }))
  const { code, stderr } = await person.run(['ps'])
  expect(code).toBe(0)
  expect(stderr).toContain('replacing the control plane (0.0.1)')
  expect(person.servingPid()).not.toBe(serving.pid)
  expect(isAlive(serving.pid)).toBe(false)
})

test('one that cannot start says why, with the end of its log', async () => {
  writeFileSync(join(person.home, 'portal.db'), 'this is no database, and never was one'.repeat(100))
  const { code, stderr } = await person.run(['ps'])
  expect(code).toBe(1)
  expect(stderr).toContain('the control plane did not start')
  expect(stderr).toContain('serve.log')
  expect(stderr).toContain('portal.db is damaged')
  // a sentence, and no trace of the program's insides
  expect(stderr).not.toMatch(/^\s+at /m)
})

test('the foreground one ends with its terminal', async () => {
  const serving = person.start(['serve'])
  await serving.until('the control plane serves')
  const pid = person.servingPid() as number
  serving.child.kill('SIGTERM')
  expect((await serving.done).code).toBe(0)
  expect(isAlive(pid)).toBe(false)
})

test('doctor is content with a healthy installation and names what is broken', async () => {
  await person.run(['serve', '--detach'])
  const healthy = await person.run(['doctor', '--json'])
  const report = JSON.parse(healthy.stdout) as { ok: boolean; checks: { name: string; is: string }[] }
  expect(report).toMatchObject({ ok: true })
  expect(healthy.code).toBe(0)
  const token = join(person.home, 'token')
  const whole = readFileSync(token)
  writeFileSync(token, 'short\n')
  const broken = await person.run(['doctor'])
  writeFileSync(token, whole)
  expect(broken.code).toBe(1)
  expect(broken.stdout).toMatch(/fail {2}token .*damaged/)
})
