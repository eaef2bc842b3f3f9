// @ts-check
/** Own properties: which there are, in their order, and how they are written down. */
import { getOwnPropertyDescriptor, ownKeys, types, unbox } from './builtins.js'
import { accessorRefusal, attributes, isAccessor, isIndex, readStack } from './descriptors.js'
import { hasOnlyElements } from './extras.js'
import { Kind, Tag } from './format.js'

/**
 * @typedef {import('./walk.js').Walk} Walk
 * @typedef {import('./path.js').PathStep} PathStep
 */

/** @type {PropertyKey[]} */
const none = []

/** The keys that are properties like any other: not an array's elements, nor what the kind's own record holds. @param {object} object @param {number} kind */
export const propertyKeys = (object, kind) => {
  switch (kind) {
    case Kind.array:
      if (hasOnlyElements(object, kind)) return none
      return ownKeys(object).filter((key) => typeof key === 'symbol' || (key !== 'length' && !isIndex(key)))
    case Kind.typedArray:
    case Kind.pooled:
      if (hasOnlyElements(object, kind)) return none
      return ownKeys(object).filter((key) => typeof key === 'symbol' || !isIndex(key))
    case Kind.regexp:
      return ownKeys(object).filter((key) => key !== 'lastIndex')
    case Kind.boxed:
      if (!types.isStringObject(object)) return ownKeys(object)
      return ownKeys(object).filter(
        (key) => typeof key === 'symbol' || (key !== 'length' && !(isIndex(key) && +key < unbox(object).length)),
      )
    default:
      return ownKeys(object)
  }
}

/** @param {Walk} walk @param {object} object @param {PropertyKey[]} keys */
export const writeProperties = (walk, object, keys) => {
  const { out } = walk
  let shape = walk.shapes
  for (const key of keys) shape = shape.with(key)
  if (shape.number < 0) {
    out.count(walk.shapeCount)
    out.count(keys.length)
    for (const key of keys) walk.value(key, /** @type {PathStep} */ (key))
    shape.number = walk.shapeCount++
  } else out.count(shape.number)
  const root = walk.current === 0
  for (const key of keys) {
    if (root) startTop(walk, object, key)
    walk.value(/** @type {any} */ (object)[key], /** @type {PathStep} */ (key))
  }
}

/** @param {Walk} walk @param {object} object @param {PropertyKey[]} keys */
export const writeDescribed = (walk, object, keys) => {
  const { out } = walk
  out.count(keys.length)
  for (const key of keys) {
    const step = /** @type {PathStep} */ (key)
    if (walk.current === 0) startTop(walk, object, key)
    walk.value(key, step)
    const found = /** @type {PropertyDescriptor} */ (getOwnPropertyDescriptor(object, key))
    const descriptor = readStack(object, key, found)
    out.byte(attributes(descriptor))
    if (isAccessor(descriptor)) {
      walk.refuse(walk.pathOf(walk.current, step), accessorRefusal)
      out.byte(Tag.undefined)
    } else walk.value(descriptor.value, step)
  }
}

/** @param {Walk} walk @param {object} object @param {PropertyKey} key */
const startTop = (walk, object, key) => {
  const value = getOwnPropertyDescriptor(object, key)?.value
  walk.tops.push({ step: /** @type {PathStep} */ (key), kind: value === null ? 'null' : typeof value, bytes: 0 })
}
