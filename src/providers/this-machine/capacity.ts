import { execFile } from 'node:child_process'
import { availableParallelism, totalmem } from 'node:os'
import type { Offer } from '../../core/jobs/model.ts'

export interface Capacity {
  readonly cpus: number
  readonly memoryBytes: number
  readonly gpus: Offer['gpus']
}

/** What this machine has: the CPUs and the memory that this process may use, and the GPUs that `nvidia-smi` names. */
export async function capacityOfThisMachine(): Promise<Capacity> {
  const total = totalmem()
  const constrained = process.constrainedMemory()
  return {
    cpus: availableParallelism(),
    // no limit reads as 0 or as a number beyond any memory
    memoryBytes: constrained > 0 && constrained < total ? constrained : total,
    gpus: gpusFrom(await nvidiaSmi()),
  }
}

/** One line a GPU, its model's name. Of several models the commonest counts: an offer has one. */
export function gpusFrom(names: string): Offer['gpus'] {
  const counts = new Map<string, number>()
  for (const name of names.split('\n').map((line) => line.trim())) {
    if (name !== '') counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const [commonest] = [...counts].sort(([, a], [, b]) => b - a)
  return commonest === undefined ? null : { model: commonest[0].replace(/^NVIDIA\s+/, ''), count: commonest[1] }
}

const nvidiaSmi = () =>
  new Promise<string>((resolve) => {
    execFile('nvidia-smi', ['--query-gpu=name', '--format=csv,noheader'], { timeout: 5000 }, (error, stdout) =>
      resolve(error === null ? stdout : ''),
    )
  })
