// @ts-check
/**
 * Loaded before a job by `NODE_OPTIONS=--import=file://…/register.mjs`: makes `portal/sdk` found from anywhere, without
 * installing it. What the project itself has under that name goes first. Decided in docs/decisions/0011.
 */
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const NAME = 'portal/sdk'
const sdk = new URL('./index.js', import.meta.url).href
/** Node 20.19 and 22.12 can `require` an ES module; before that the answer is an error that says so. */
const forRequire = process.features.require_module ? sdk : new URL('./too-old.cjs', import.meta.url).href

/** @param {any} error */
const notThere = (error) =>
  ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED'].includes(error?.code)

if (typeof module.registerHooks === 'function') {
  module.registerHooks({
    resolve: (specifier, context, next) => {
      if (specifier !== NAME) return next(specifier, context)
      try {
        return next(specifier, context)
      } catch (error) {
        if (!notThere(error)) throw error
        const required = context.conditions?.includes('require') === true
        return required && forRequire !== sdk
          ? { url: forRequire, format: 'commonjs', shortCircuit: true }
          : { url: sdk, format: 'module', shortCircuit: true }
      }
    },
  })
} else {
  // Node before 22.15: hooks run in a thread of their own, which costs the start some 25 ms
  module.register('./resolve-hooks.mjs', import.meta.url, { data: { name: NAME, sdk } })
  const Module = /** @type {any} */ (module).Module
  const hook = '_resolveFilename'
  const resolveFilename = Module[hook]
  Module[hook] = function (/** @type {string} */ request, /** @type {any[]} */ ...rest) {
    if (request !== NAME) return resolveFilename.call(this, request, ...rest)
    try {
      return resolveFilename.call(this, request, ...rest)
    } catch (error) {
      if (!notThere(error)) throw error
      return fileURLToPath(forRequire)
    }
  }
}
