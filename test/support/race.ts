import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Applied, Transaction } from '../../src/store/index.ts'

/** Applies all of them at the same time, by four threads with a store each, and gives what came of each. */
export async function race(where: string, transactions: readonly Transaction[]): Promise<readonly Applied[]> {
  const threads = 4
  const workers = Array.from({ length: threads }, (_, n) => {
    const mine = transactions.filter((_transaction, index) => index % threads === n)
    return new Worker(new URL('store-writer.ts', import.meta.url), { workerData: { where, transactions: mine } })
  })
  try {
    await Promise.all(workers.map((worker) => once(worker, 'message')))
    const results = workers.map((worker) => once(worker, 'message'))
    for (const worker of workers) worker.postMessage('go')
    return (await Promise.all(results)).flatMap(([applied]) => applied as readonly Applied[])
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
}
