import { expect, test } from 'vitest'
import { codeOf, privateStateOf } from './source.js'

test.for([
  [
    'a field',
    class {
      #a = 1
      get a() {
        return this.#a
      }
    },
    '#a',
  ],
  [
    'a method',
    class {
      #a() {}
      b() {
        this.#a()
      }
    },
    '#a',
  ],
  [
    'a brand that is only asked for',
    class {
      #ä = 1
      has(o: object) {
        return #ä in o && this.#ä
      }
    },
    '#ä',
  ],
  [
    'a name after a division',
    class {
      x = 4
      half(n: number) {
        return this.x / n / 2 + this.#y
      }
      #y = 1
    },
    '#y',
  ],
  [
    'a name inside a template',
    class {
      #z = 1
      text() {
        return `a ${`b ${this.#z}`}`
      }
    },
    '#z',
  ],
] as const)('%s is private state', ([, type, what]) => {
  expect(privateStateOf(type)).toEqual({ certain: true, what })
})

test('so is what a class that it extends keeps', () => {
  class Base {
    #hidden = 1
    read() {
      return this.#hidden
    }
  }
  class Derived extends Base {}
  expect(privateStateOf(Derived)).toEqual({ certain: true, what: '#hidden' })
})

test.for([
  [
    'a string',
    class {
      a = '#no'
      b = "it's #no"
    },
  ],
  [
    'a comment',
    class {
      /* #no */ a = 1 // #no
    },
  ],
  [
    'a template',
    class {
      a = `#no ${1 + 1} #no`
    },
  ],
  [
    'a regular expression',
    class {
      a = /#no["'`]/
      b = [/[/#no]/g]
      c(x: string) {
        return /#no/.test(x)
      }
    },
  ],
  [
    'a call with a property of this',
    class {
      m = new Map()
      k = 1
      get() {
        return this.m.get(this.k)
      }
    },
  ],
] as const)('a # in %s is none', ([, type]) => {
  expect(privateStateOf(type)).toBe(null)
})

test.for([
  ['__classPrivateFieldGet(this, _A_x, "f")'],
  ['_classPrivateFieldGet(_x, this)'],
  ['_class_private_field_get(this, _x)'],
  ['__privateGet(this, _x)'],
  ['store.get(this)'],
  ['store.set(this, 1)'],
  ['(new WeakMap()).size'],
] as const)('%s seems to keep values elsewhere', ([expression]) => {
  const type = new Function(`return class { read() { return ${expression} } }`)() as Function
  expect(privateStateOf(type)).toMatchObject({ certain: false })
})

test('text that ends anywhere is read to its end', () => {
  for (const text of [
    'class { a = "',
    'class { a = `${',
    'class { a = /x',
    'class { /*',
    'class { //',
    'class { `${`${',
    '}}}}`',
  ])
    expect(codeOf(text).length).toBeLessThanOrEqual(text.length + 4)
})
