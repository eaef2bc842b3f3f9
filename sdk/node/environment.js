// @ts-check
/** What of this process and machine belongs to the state without being in it (K-WHOLE-4). */
import { availableParallelism, endianness } from 'node:os'

export const VERSION = '0.1.0'

/** @returns {Record<string, unknown>} */
export const environment = () => {
  const format = new Intl.DateTimeFormat().resolvedOptions()
  return {
    language: 'node',
    version: process.versions.node,
    implementation: `v8 ${process.versions.v8}`,
    machine: `${process.platform}-${process.arch}`,
    hashSeed: null,
    threads: Number(process.env.UV_THREADPOOL_SIZE ?? 4),
    cpus: availableParallelism(),
    byteorder: endianness() === 'LE' ? 'little' : 'big',
    packages: { portal: VERSION },
    locale: format.locale,
    timezone: format.timeZone,
    umask: process.umask(),
    cwd: process.cwd(),
  }
}

const exact = /** @type {const} */ ([
  ['implementation', 'another engine may round Math.exp and its like otherwise'],
  ['machine', 'another kind of processor may round otherwise'],
  ['locale', 'texts may be made and compared otherwise'],
  ['timezone', 'local times differ'],
])

/**
 * Why a state that was saved there cannot go on here.
 * @param {Record<string, any>} saved @param {Record<string, any>} here @param {boolean} bitExact the job asked for equal bytes
 * @returns {import('./graph/refusals.js').RefusedValue[]}
 */
export const environmentRefusals = (saved, here, bitExact) => {
  /** @param {string} key @param {string} reason @param {string} advice */
  const differs = (key, reason, advice) => ({
    path: `environment.${key}`,
    type: String(saved[key]),
    reason: `here it is ${here[key]}: ${reason}`,
    advice,
  })
  const refused = []
  if (saved.language !== here.language)
    refused.push(
      differs('language', 'the state was saved by another SDK', 'start the job with the same command as before'),
    )
  if (saved.byteorder !== here.byteorder)
    refused.push(
      differs(
        'byteorder',
        'numbers in memory are written the other way round',
        'choose a machine of the same byte order',
      ),
    )
  if (bitExact)
    for (const [key, reason] of exact)
      if (saved[key] !== here[key])
        refused.push(differs(key, reason, 'choose an equal machine, or do without --bit-exact'))
  return refused
}
