import { noise } from '../../../src/checkpoints/chain/testing.ts'

const chunk = 64 << 10

/** What a job has after `slot` saves: of 16 chunks one changed with each. */
export const stateOf = (slot: number): Record<string, Buffer> => ({
  graph: Buffer.from(`after ${slot}`),
  buffers: Buffer.concat(
    Array.from({ length: 16 }, (_, i) => noise(chunk, `${i} since ${slot - ((((slot - i) % 16) + 16) % 16)}`)),
  ),
})
