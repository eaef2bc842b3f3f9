import type { Script } from './script.ts'

/** Scripts that found something, with what it was. They are played with every run. */
export const failed: readonly { readonly was: string; readonly script: Script }[] = [
  {
    was: 'a job was stopped while its machine came up, and the machine was forgotten',
    script: { seed: 48508101, ttl: 'off', happens: [{ do: 'stop' }] },
  },
  {
    was: 'a job was stopped before its agent heard of it, and was never stopped',
    script: {
      seed: 0,
      ttl: 'off',
      happens: [{ do: 'network down', ms: 1001 }, { do: 'run at', on: 'desk' }, { do: 'stop' }],
    },
  },
  {
    was: 'a look at the very end of a lease looked again and again at the same instant',
    script: {
      seed: 0,
      ttl: 'off',
      happens: [
        { do: 'pass', ms: 35_297 },
        { do: 'cloud blind', ms: 637_860 },
        { do: 'pass', ms: 47_858 },
        { do: 'network down', ms: 555_001 },
        { do: 'pass', ms: 592_854 },
      ],
    },
  },
  {
    was: 'the store did not say whether a job was made, and whoever asked was not told',
    script: {
      seed: 0,
      ttl: 'off',
      happens: [
        { do: 'answers unknown', count: 1 },
        { do: 'run at', on: 'cloud' },
      ],
    },
  },
  {
    was: 'a machine that was not found once was taken for gone hours later, without being asked about again',
    script: { seed: 715702671, ttl: 'off', happens: [] },
  },
  {
    was: 'a target that was not heard, past its check-in limit, was looked at again and again at the same instant',
    script: {
      seed: 0,
      ttl: 'off',
      happens: [
        { do: 'pass', ms: 9506 },
        { do: 'move to', on: 'cloud/eu/a/small/spot' },
        { do: 'kill control plane', calls: 30, when: 'after' },
        { do: 'pass', ms: 184_637 },
      ],
    },
  },
  {
    was: 'a stop gave up a suspension whose chain was sealed, and the last checkpoint was fenced by that seal',
    script: {
      seed: 9,
      ttl: '40m',
      happens: [{ do: 'store fails', count: 40 }, { do: 'suspend' }, { do: 'pass', ms: 17_730 }, { do: 'stop' }],
    },
  },
  {
    was: 'a resume that did not come to rest: answers of the store were unknown, a call was silent and an agent lied',
    script: {
      seed: 0,
      ttl: 'off',
      happens: [
        { do: 'pass', ms: 60_000 },
        { do: 'an agent lies' },
        { do: 'answers unknown', count: 1 },
        { do: 'suspend' },
        { do: 'calls silent', count: 1 },
        { do: 'pass', ms: 1896 },
        { do: 'pass', ms: 2349 },
        { do: 'resume' },
        { do: 'pass', ms: 60_000 },
      ],
    },
  },
  {
    was: 'a resume that waited for the machine before it to be gone was not looked at any more',
    script: {
      seed: 1440067986,
      ttl: '40m',
      happens: [
        { do: 'pass', ms: 226_140 },
        { do: 'machine cut off', ms: 1_367_238 },
        { do: 'cloud blind', ms: 778_550 },
        { do: 'pass', ms: 778_762 },
        { do: 'resume' },
        { do: 'pass', ms: 57_702 },
      ],
    },
  },
]
