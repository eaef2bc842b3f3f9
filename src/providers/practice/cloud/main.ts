/**
 * The practice cloud's own process: `practice.js FOLDER AGENT`. It outlives the control plane, as a cloud does. One for a
 * folder: a second one finds the lock held and ends. It ends by itself when nobody has needed it for a while.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { second } from '../../../core/time/index.ts'
import { privateFolder, writePrivate } from '../../files.ts'
import { takeLock } from '../../lock.ts'
import { identityOf } from '../../processes.ts'
import type { CloudAddress } from '../api.ts'
import { Cloud } from './cloud.ts'
import { serve } from './server.ts'

const [, , folder, agentEntry] = process.argv
if (folder === undefined || agentEntry === undefined) {
  console.error('usage: practice FOLDER AGENT')
  process.exit(2)
}

await privateFolder(folder)
// one that is just ending still holds it for a moment
const lock = takeLock(join(folder, 'cloud.lock'), 2 * second)
const identity = identityOf(process.pid)
if (lock === null || identity === null) process.exit(0)

const addressFile = join(folder, 'cloud.json')
const cloud = await Cloud.open(folder, agentEntry, Date.now)
let calledAt = Date.now()
let ending = false
const server = await serve(cloud, (method) => {
  calledAt = Date.now()
  if (method === 'shutdown') ending = true
})
const address: CloudAddress = { ...identity, port: server.port, token: server.token }
await writePrivate(addressFile, JSON.stringify(address))

const leave = (): never => {
  server.close()
  rmSync(addressFile, { force: true })
  lock.release()
  process.exit(0)
}
// machines go on without their cloud, and are found again
process.on('SIGTERM', leave)

for (;;) {
  if (ending || (!cloud.hasMachines && Date.now() - calledAt > cloud.idleExit)) leave()
  try {
    await cloud.look()
  } catch (error) {
    console.error('look:', error)
  }
  // deadlines are kept to a fifth of a second while there are machines
  await sleep(cloud.hasMachines ? 0.1 * second : 0.25 * second)
}
