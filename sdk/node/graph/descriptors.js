// @ts-check
/** Property descriptors: what is usual, and how they are written down. */
import { getOwnPropertyDescriptor, stackGetter } from './builtins.js'
import { Attribute } from './format.js'

/** @param {string | symbol} key */
export const isIndex = (key) => typeof key === 'string' && /^(0|[1-9]\d{0,9})$/.test(key) && Number(key) < 4294967295

/** @param {PropertyDescriptor} descriptor */
export const isAccessor = (descriptor) =>
  descriptor.get !== undefined || descriptor.set !== undefined || !('value' in descriptor)

/** @param {PropertyDescriptor} descriptor */
export const isUsual = (descriptor) =>
  descriptor.writable === true && descriptor.enumerable === true && descriptor.configurable === true

/** @param {object} object @param {PropertyKey[]} keys */
export const allUsual = (object, keys) => {
  for (const key of keys)
    if (!isUsual(/** @type {PropertyDescriptor} */ (getOwnPropertyDescriptor(object, key)))) return false
  return true
}

/** @param {PropertyDescriptor} descriptor */
export const attributes = (descriptor) =>
  (descriptor.writable ? Attribute.writable : 0) |
  (descriptor.enumerable ? Attribute.enumerable : 0) |
  (descriptor.configurable ? Attribute.configurable : 0)

/** @param {object} object @param {PropertyKey} key @param {PropertyDescriptor} found @returns {PropertyDescriptor} */
export const readStack = (object, key, found) =>
  key === 'stack' && found.get !== undefined && found.get === stackGetter
    ? {
        value: Reflect.apply(found.get, object, []),
        writable: true,
        enumerable: found.enumerable,
        configurable: found.configurable,
      }
    : found

export const accessorRefusal = {
  type: 'accessor',
  reason: 'a getter or setter of its own is code',
  advice: 'define it on the class, or leave it out of the state',
}
