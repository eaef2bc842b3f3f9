import { expect, test } from 'vitest'
import { Meter, type Used } from './measure.ts'

const used = (cpu: number | null, memoryBytes: number | null = 1000, memoryPeakBytes: number | null = null): Used => ({
  cpu,
  memoryBytes,
  memoryPeakBytes,
})

test('says nothing before it knows something: unknown is never zero', () => {
  const meter = new Meter()
  expect(meter.sample(1)).toBe(null)
  meter.look(used(0), 0)
  expect(meter.sample(1)).toBe(null)
  meter.look(used(null, null), 5000)
  expect(meter.sample(1)).toBe(null)
  meter.look(used(2500), 10_000)
  expect(meter.sample(7)).toEqual({ until: 7, cpu: 0.25, memoryBytes: 1000, memoryPeakBytes: 1000 })
})

test('J-IDLE-3 averages the last minute', () => {
  const meter = new Meter()
  // two minutes at one core, then a minute of nothing
  for (let at = 0; at <= 120_000; at += 5000) meter.look(used(at), at)
  expect(meter.sample(0)?.cpu).toBe(1)
  for (let at = 125_000; at <= 180_000; at += 5000) meter.look(used(120_000), at)
  expect(meter.sample(0)?.cpu).toBe(0)
})

test('J-IDLE-3 what Portal makes the job do counts neither as CPU nor as time', () => {
  const meter = new Meter()
  meter.look(used(0), 0)
  meter.look(used(100), 10_000)
  meter.ours(true, used(100), 10_000)
  meter.look(used(5000), 15_000)
  meter.ours(false, used(9000), 20_000)
  meter.look(used(9100), 30_000)
  expect(meter.sample(0)?.cpu).toBeCloseTo(0.01)
})

test('the peak is the kernel’s where it keeps one, else the highest that was seen', () => {
  const meter = new Meter()
  meter.look(used(0, 5000), 0)
  meter.look(used(0, 1000), 5000)
  expect(meter.sample(0)).toMatchObject({ memoryBytes: 1000, memoryPeakBytes: 5000 })
  meter.look(used(0, 1000, 8000), 10_000)
  expect(meter.sample(0)).toMatchObject({ memoryPeakBytes: 8000 })
})
