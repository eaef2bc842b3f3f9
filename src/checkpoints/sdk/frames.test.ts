import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { noise } from '../chain/testing.ts'
import { encodeHead, FrameError, frameReader, maxLargeMetaBytes, maxMetaBytes } from './frames.ts'

test('frames are the same however their bytes are cut', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({ n: fc.nat(), text: fc.string({ maxLength: 300 }), length: fc.oneof(fc.nat(200), fc.nat(200_000)) }),
        { minLength: 1, maxLength: 6 },
      ),
      fc.integer({ min: 1, max: 70_000 }),
      (frames, cut) => {
        const sent = frames.map(({ n, text, length }) => ({
          meta: { t: 'x', n, text },
          payload: noise(length, `${n}`),
        }))
        const bytes = Buffer.concat(sent.flatMap(({ meta, payload }) => [encodeHead(meta, payload.length), payload]))
        const got: { meta: object; payload: Buffer }[] = []
        const reader = frameReader(1, ({ meta, payload }) => got.push({ meta, payload: Buffer.from(payload) }))
        for (let at = 0; at < bytes.length; at += cut) reader.push(bytes.subarray(at, at + cut))
        expect(got).toEqual(sent)
      },
    ),
    { numRuns: 50 },
  )
})

test('whatever bytes come, they are frames or a FrameError', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 8 }), (parts) => {
      const reader = frameReader(1, ({ meta }) => expect(typeof meta.t).toBe('string'))
      try {
        for (const part of parts) reader.push(Buffer.from(part))
      } catch (error) {
        if (!(error instanceof FrameError)) throw error
      }
    }),
  )
})

test('only a save may have a large meta', () => {
  const large = encodeHead({ t: 'save', text: 'x'.repeat(maxMetaBytes) }, 0)
  const got: string[] = []
  const reader = frameReader(1, ({ meta }) => got.push(meta.t))
  reader.allowLarge(true)
  reader.push(large)
  expect(got).toEqual(['save'])
  reader.allowLarge(false)
  expect(() => reader.push(large)).toThrow(FrameError)
  expect(() => encodeHead({ t: 'x', text: 'x'.repeat(maxLargeMetaBytes) }, 0)).toThrow(FrameError)
})
