import { defineConfig } from 'vitest/config'

/**
 * unit: pure or nearly so, in milliseconds, part of `npm run check`.
 * conformance: ports on real services. e2e: real processes. Both part of `npm test`.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'sdk/node/**/*.test.ts', 'test/tidy/**/*.test.ts'],
          // they take milliseconds; a busy machine may let one wait
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'conformance',
          include: ['test/conformance/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      { test: { name: 'properties', include: ['test/properties/**/*.test.ts'], testTimeout: 300_000 } },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
          // dozens of real processes are killed at chosen instants; one that comes out otherwise is tried once more, and the
          // report says so
          retry: 1,
        },
      },
    ],
  },
})
