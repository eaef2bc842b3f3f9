// @ts-check
/** `register.mjs` for Node before 22.15, which runs hooks in a thread of their own. */

/** @type {{ name: string, sdk: string }} */
let known

/** @param {{ name: string, sdk: string }} data */
export const initialize = (data) => {
  known = data
}

/** @param {string} specifier @param {any} context @param {(specifier: string, context: any) => Promise<any>} next */
export const resolve = async (specifier, context, next) => {
  if (specifier !== known.name) return next(specifier, context)
  try {
    return await next(specifier, context)
  } catch (/** @type {any} */ error) {
    if (!['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED'].includes(error?.code))
      throw error
    return { url: known.sdk, format: 'module', shortCircuit: true }
  }
}
