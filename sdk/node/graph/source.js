// @ts-check
/**
 * What a class's own text says about state that no one outside can read: `#name`, and values kept for `this` in a WeakMap.
 */
import { functionText, getOwnPropertyDescriptor, getPrototypeOf, isNative, namesOfConstructors } from './builtins.js'

/**
 * A class's text without strings, comments and regular expressions, so that a `#` in them means nothing. What stands in
 * `${}` of a template stays. When in doubt something stays in: a class is then refused that could have been carried,
 * never the other way round.
 * @param {string} text
 */
export const codeOf = (text) => {
  let code = ''
  /** depth of braces at which each open template goes on @type {number[]} */
  const templates = []
  let depth = 0
  let at = 0
  const skipTo = (/** @type {string} */ end) => {
    const found = text.indexOf(end, at)
    at = found < 0 ? text.length : found + end.length
  }
  const skipQuoted = (/** @type {string} */ quote) => {
    for (at++; at < text.length && text[at] !== quote; at++) if (text[at] === '\\') at++
    at++
  }
  const skipTemplate = () => {
    for (; at < text.length; at++) {
      if (text[at] === '\\') at++
      else if (text[at] === '`') {
        at++
        return
      } else if (text[at] === '$' && text[at + 1] === '{') {
        templates.push(depth++)
        at += 2
        return
      }
    }
  }
  while (at < text.length) {
    const char = text[at]
    if (char === '/' && text[at + 1] === '/') skipTo('\n')
    else if (char === '/' && text[at + 1] === '*') skipTo('*/')
    else if (char === '"' || char === "'") {
      skipQuoted(char)
      code += '""'
    } else if (char === '`') {
      at++
      skipTemplate()
    } else if (char === '}' && templates.at(-1) === depth - 1) {
      depth = /** @type {number} */ (templates.pop())
      at++
      code += ' '
      skipTemplate()
    } else if (
      char === '/' &&
      /(^|[=(,;:!&|?{}[+\-*%~^<>]|\b(?:return|typeof|case|in|of|do|else|void|yield|await))\s*$/.test(code.slice(-20))
    ) {
      at = endOfRegExp(text, at)
      code += '/r/'
    } else {
      if (char === '{') depth++
      if (char === '}') depth--
      code += char
      at++
    }
  }
  return code
}

/** @param {string} text @param {number} start */
const endOfRegExp = (text, start) => {
  let inClass = false
  for (let at = start + 1; at < text.length && text[at] !== '\n'; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '[') inClass = true
    else if (text[at] === ']') inClass = false
    else if (text[at] === '/' && !inClass) return at + 1
  }
  return start + 1
}

const privateName = /#([\p{ID_Start}$_][\p{ID_Continue}$]*)/u
const keptForThis =
  /\b(__classPrivateField(?:Get|Set|In)|__privateGet|__privateSet|__privateAdd|_classPrivate\w+|_class_private_\w+|WeakMap|WeakSet)\b|\.(?:get|set|has|add|delete)\(\s*this\s*[,)]/

/**
 * @typedef {{ certain: boolean, what: string } | null} PrivateState `certain`: a `#name`; else values that seem kept for `this` elsewhere
 */

/** @type {WeakMap<Function, PrivateState>} */
const looked = new WeakMap()

/** What the class, or one that it extends, keeps where no one can read it. @param {Function} type @returns {PrivateState} */
export const privateStateOf = (type) => {
  const known = looked.get(type)
  if (known !== undefined) return known
  /** @type {PrivateState} */
  let found = null
  for (
    let current = /** @type {any} */ (type);
    typeof current === 'function' && !namesOfConstructors.has(current) && current !== Function.prototype;
    current = baseOf(current)
  ) {
    if (isNative(current)) break
    const code = codeOf(functionText(current))
    const name = privateName.exec(code)
    if (name) {
      found = { certain: true, what: `#${name[1]}` }
      break
    }
    const kept = keptForThis.exec(code)
    if (kept && !found) found = { certain: false, what: kept[0].replace(/\s+/g, ' ') }
  }
  looked.set(type, found)
  return found
}

/** The class that this one extends; also of an old-style constructor, whose prototypes alone are chained. @param {any} type */
const baseOf = (type) => {
  const base = getPrototypeOf(type)
  if (base !== Function.prototype) return base
  const prototype = getOwnPropertyDescriptor(type, 'prototype')?.value
  const parent = prototype && getPrototypeOf(prototype)
  const constructor = parent && getOwnPropertyDescriptor(parent, 'constructor')?.value
  return constructor === type ? null : constructor
}
