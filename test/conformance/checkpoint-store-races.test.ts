import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore, type MemoryStore } from '../../src/checkpoints/memory/index.ts'
import { collect } from '../../src/checkpoints/chain/collect.ts'
import type { Chain } from '../../src/checkpoints/chain/model.ts'
import { newestManifest, readManifest, readRecord, verify } from '../../src/checkpoints/chain/read.ts'
import { seal } from '../../src/checkpoints/chain/seal.ts'
import { chainOn, readBytes, saveBytes } from '../../src/checkpoints/chain/testing.ts'

/**
 * Two attempts, a sealer and two collectors on one store, every store call of each stopped before and after its effect.
 * A list of numbers picks who goes next; whoever is killed stands still for ever where it is.
 */
const world = (picks: readonly number[]) => {
  const truth = memoryStore()
  const waiting: { readonly who: string; readonly go: () => void }[] = []
  const killed = new Set<string>()
  const view = (who: string): Chain =>
    chainOn(memoryStore({ of: truth, at: () => new Promise<void>((go) => waiting.push({ who, go })) }))
  /** Lets one after the other take a step until nobody has one to take; `each` is called between steps. */
  const play = async (kills: ReadonlyMap<number, string>, each: () => Promise<void>): Promise<void> => {
    for (let step = 0; ; step++) {
      // everything that follows from the last step has happened when the next macrotask runs
      await new Promise((resolve) => setImmediate(resolve))
      const victim = kills.get(step)
      if (victim) killed.add(victim)
      const able = waiting.filter(({ who }) => !killed.has(who))
      if (able.length === 0) return
      const next = able[(picks[step % picks.length] as number) % able.length] as (typeof able)[number]
      waiting.splice(waiting.indexOf(next), 1)
      next.go()
      if (step % 16 === 0) await each()
    }
  }
  return { truth, view, play, killed }
}

const parts = ['a', 'b', 'c', 'd']
/** The state after a turn: one of four parts changes with each. */
const stateAfter = (token: number, turn: number): Record<string, Buffer> =>
  Object.fromEntries(parts.map((part, i) => [part, Buffer.from(`${part} of ${token} at ${turn - ((turn - i) % 4)}`)]))

const readable = async (truth: MemoryStore, committed: ReadonlyMap<number, Record<string, Buffer>>): Promise<void> => {
  const chain = chainOn(truth)
  for (const [slot, state] of committed) {
    const record = await readRecord(chain, slot)
    if (record?.is === 'dropped') continue
    if (record?.is !== 'manifest') throw new Error(`slot ${slot} was committed and holds ${record?.is ?? 'nothing'}`)
    expect(await readBytes(chain, record)).toEqual(state)
  }
  const newest = await newestManifest(chain)
  expect(newest.damaged).toEqual([])
  if (committed.size > 0) expect(newest.manifest?.slot).toBeGreaterThanOrEqual(Math.max(...committed.keys()))
}

test('K-WHOLE-1 K-WHOLE-5 whatever writers, sealer and collectors do to each other, and wherever they are killed: what was committed is readable, and one attempt goes on', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        picks: fc.array(fc.nat(1000), { minLength: 20, maxLength: 200 }),
        kills: fc.array(
          fc.tuple(fc.nat(400), fc.constantFrom('old', 'new', 'sealer', 'sealer again', 'collector', 'collector 2')),
          { maxLength: 2 },
        ),
        sealAfter: fc.nat(3),
        aborted: fc.boolean(),
      }),
      async ({ picks, kills, sealAfter, aborted }) => {
        const { truth, view, play, killed } = world(picks)
        const committed = new Map<number, Record<string, Buffer>>()
        const writers = new Map<number, number>()
        let sealed: { slot: number; base: number | null } | null = null
        let reported = 0
        const reports = Promise.withResolvers<void>()

        const write = async (
          who: string,
          token: number,
          last: { slot: number; manifest: number | null },
          turns: number,
        ) => {
          let { slot, manifest } = last
          for (let turn = 1; turn <= turns; turn++) {
            const state = stateAfter(token, turn)
            const saved = await saveBytes(view(who), { token, slot: slot + 1, parent: manifest }, state)
            if (saved.is === 'fenced') return
            expect(committed.has(saved.slot)).toBe(false)
            committed.set(saved.slot, state)
            writers.set(saved.slot, token)
            slot = manifest = saved.slot
            if (token === 1) {
              reported = saved.slot
              if (reported >= sealAfter) reports.resolve()
            }
          }
          reports.resolve()
        }
        const goOn = async (sealedSlot: number, base: number | null) => {
          if (sealed) return
          sealed = { slot: sealedSlot, base }
          // the base holds everything that was ever reported as committed
          expect(base ?? 0).toBe(Math.max(0, ...committed.keys()))
          if (base !== null) await verify(view('new'), await readManifest(view('new'), base))
          await write('new', aborted ? 1 : 2, { slot: sealedSlot, manifest: base }, 4)
        }
        const sealing = async (who: string) => {
          await reports.promise
          const after = reported
          const { sealedSlot, adopted } = await seal({ ...view(who), after, by: 'move' })
          await goOn(sealedSlot, adopted.at(-1)?.slot ?? (after === 0 ? null : after))
        }
        const collecting = async (who: string) => {
          for (let i = 0; i < 4; i++) {
            const { manifest } = await newestManifest(view(who))
            if (!manifest) continue
            // another collector may have dropped it by now, if a later one was verified
            const there = await verify(view(who), manifest).then(
              () => true,
              () => false,
            )
            if (there)
              await collect({ ...view(who), verified: manifest.slot, keep: [] }).catch((error: Error) => {
                if (error.name !== 'DamageError') throw error
              })
          }
        }
        const failures: unknown[] = []
        for (const actor of [
          write('old', 1, { slot: 0, manifest: null }, 6),
          sealing('sealer'),
          collecting('collector'),
          collecting('collector 2'),
        ])
          actor.catch((error: unknown) => failures.push(error))
        await play(new Map(kills), () => readable(truth, committed))
        // the sealer that was killed is started again and says the same
        if (killed.has('sealer') && !killed.has('sealer again')) {
          reports.resolve()
          sealing('sealer again').catch((error: unknown) => failures.push(error))
          await play(new Map(), () => readable(truth, committed))
        }
        expect(failures).toEqual([])
        await readable(truth, committed)
        const sealedSlot = (sealed as { slot: number } | null)?.slot ?? Number.POSITIVE_INFINITY
        const behind = aborted ? 1 : 2
        expect([...writers].filter(([slot, token]) => token !== (slot < sealedSlot ? 1 : behind))).toEqual([])
      },
    ),
    { numRuns: 200 },
  )
})
