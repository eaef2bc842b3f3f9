import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { failed } from './failed.ts'
import { play, scripts } from './script.ts'

const runs = Number(process.env.PORTAL_PROPERTY_RUNS ?? 150)

describe('moves, suspensions, resumes and stops under faults', () => {
  test('J-SAFE-1 J-SAFE-2 J-SAFE-3 J-LEASE-3 J-RES-1 J-LOST-1 J-LOOP-5 at most one attempt executes, nothing is lost or left over, whatever is killed when', async () => {
    const holds = fc.asyncProperty(scripts, async (script) => {
      expect(await play(script)).toEqual([])
    })
    await fc.assert(holds, { numRuns: runs })
  })

  test.each(failed)('what went wrong once: $was', async ({ script }) => {
    expect(await play(script)).toEqual([])
  })
})
