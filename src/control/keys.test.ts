import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { agentOf, agentToken, masterKey } from './keys.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'portal-keys-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

describe('the master key', () => {
  test('is made once, private, and stays the same', () => {
    const key = masterKey(home)
    expect(key).toHaveLength(32)
    expect(masterKey(home)).toEqual(key)
    expect(statSync(join(home, 'key')).mode & 0o777).toBe(0o600)
    expect(readdirSync(home)).toEqual(['key'])
  })

  test('two that start at once draw one key', async () => {
    const program = `import { masterKey } from ${JSON.stringify(join(import.meta.dirname, 'keys.ts'))}
      console.log(masterKey(${JSON.stringify(home)}).toString('hex'))`
    const run = () =>
      new Promise<string>((done, fail) => {
        const child = spawn(process.execPath, ['--input-type=module', '-e', program])
        let said = ''
        child.stdout.on('data', (text) => (said += text))
        child.stderr.on('data', (text) => (said += text))
        child.on('error', fail)
        child.on('close', () => done(said.trim()))
      })
    const keys = await Promise.all(Array.from({ length: 6 }, run))
    expect(keys[0]).toMatch(/^[0-9a-f]{64}$/)
    expect(new Set(keys).size).toBe(1)
    expect(readdirSync(home)).toEqual(['key'])
  })

  test('one that others may read is refused, saying what to do', () => {
    masterKey(home)
    chmodSync(join(home, 'key'), 0o644)
    expect(() => masterKey(home)).toThrow(/can be read by others: chmod 600/)
  })

  test('one that is damaged is refused and never made anew: it would close every checkpoint', () => {
    writeFileSync(join(home, 'key'), 'short', { mode: 0o600 })
    expect(() => masterKey(home)).toThrow(/damaged \(5 bytes, not 32\)/)
    expect(readFileSync(join(home, 'key'), 'utf8')).toBe('short')
  })
})

describe('an agent’s token', () => {
  const key = Buffer.alloc(32, 1)
  const token = agentToken(key, 'j1.2')

  test('says who it is', () => {
    expect(agentOf(key, token)).toBe('j1.2')
    expect(agentOf(key, agentToken(key, 'this-machine'))).toBe('this-machine')
  })

  test.each([
    ['of another installation', agentToken(Buffer.alloc(32, 2), 'j1.2')],
    ['of another agent, under this one’s name', agentToken(key, 'j1.3').replace('j1.3', 'j1.2')],
    ['cut short', token.slice(0, -1)],
    ['longer', `${token}A`],
    ['without its proof', 'j1.2:'],
    ['the name alone', 'j1.2'],
    ['no name', token.slice(token.indexOf(':'))],
    ['nothing', ''],
    ['not ASCII, of the same length', `j1.2:${'é'.repeat(43)}`],
  ])('that is forged is nobody’s: %s', (_, forged) => {
    expect(agentOf(key, forged)).toBeNull()
  })

  test('no other text is taken for one', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.base64String(),
          fc.tuple(fc.string(), fc.base64String()).map((two) => two.join(':')),
        ),
        (text) => {
          expect(text === token ? null : agentOf(key, text)).toBeNull()
        },
      ),
    )
  })

  test('whatever an agent is called, its token is its own', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (name) => {
        expect(agentOf(key, agentToken(key, name))).toBe(name)
      }),
    )
  })
})
