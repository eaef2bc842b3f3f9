import { expect, test } from 'vitest'
import { capacityOfThisMachine, gpusFrom } from './capacity.ts'

test('GPUs as nvidia-smi names them, of several models the commonest', () => {
  expect(gpusFrom('')).toBeNull()
  expect(gpusFrom('NVIDIA A100-SXM4-80GB\nNVIDIA A100-SXM4-80GB\n')).toEqual({ model: 'A100-SXM4-80GB', count: 2 })
  expect(gpusFrom('Tesla T4\nNVIDIA L4\nNVIDIA L4')).toEqual({ model: 'L4', count: 2 })
})

test('CPUs and memory of the machine that runs this', async () => {
  const { cpus, memoryBytes } = await capacityOfThisMachine()
  expect(cpus).toBeGreaterThanOrEqual(1)
  expect(Number.isSafeInteger(memoryBytes)).toBe(true)
})
