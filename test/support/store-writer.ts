/** A writer of its own thread and connection: applies what it is given, all at once, when told. Used by the races. */
import { parentPort, workerData } from 'node:worker_threads'
import { openStore, type Transaction } from '../../src/store/index.ts'

const { where, transactions } = workerData as { readonly where: string; readonly transactions: readonly Transaction[] }
const store = await openStore(where)
parentPort?.once('message', async () => {
  const applied = await Promise.all(transactions.map((t) => store.apply(t)))
  await store.close()
  parentPort?.postMessage(applied)
})
parentPort?.postMessage('ready')
