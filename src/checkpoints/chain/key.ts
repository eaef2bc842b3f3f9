import { hkdfSync } from 'node:crypto'

/**
 * The key of one job's chain, 32 bytes, from the installation's master key (at least 32 bytes). An agent gets its job's
 * key and no other: it cannot forge what another job would open.
 */
export const jobKey = (masterKey: Uint8Array, jobId: string): Buffer => {
  if (masterKey.length < 32)
    throw new RangeError(`a master key has at least 32 bytes, this one has ${masterKey.length}: make a new one`)
  return Buffer.from(hkdfSync('sha256', masterKey, 'portal checkpoints', `chain 1 ${jobId}`, 32))
}
