/** For tests: what a state can be made of, and what must be named. */
import { EventEmitter } from 'node:events'
import { createServer, Socket } from 'node:net'
import { Readable } from 'node:stream'
import { MessageChannel } from 'node:worker_threads'
import { expect } from 'vitest'

export class Classy {
  n: number
  constructor(n: number) {
    this.n = n
  }
  get twice(): number {
    return this.n * 2
  }
}
class Derived extends Classy {
  more = ['x']
}
class ArrayLike extends Array<number> {
  label = 'mine'
}
class MapLike extends Map<string, number> {
  label = 'mine'
}
class SetLike extends Set<number> {}
class Failure extends TypeError {
  code = 'E_FAILED'
}
class Bytes extends Uint8Array {}
class DateLike extends Date {}
class Hidden {
  #secret = 1
  get secret(): number {
    return this.#secret
  }
}
class HiddenMethod {
  open = 1
  #inner(): number {
    return this.open
  }
  read(): number {
    return this.#inner()
  }
}
const kept = new WeakMap<object, number>()
class Kept {
  constructor() {
    kept.set(this, 1)
  }
  read(): number | undefined {
    return kept.get(this)
  }
}
export class Money {
  #cents: number
  constructor(cents: number) {
    this.#cents = cents
  }
  get cents(): number {
    return this.#cents
  }
  toPortal(): { cents: number } {
    return { cents: this.#cents }
  }
  static fromPortal(data: { cents: number }, live: Money | undefined): Money {
    if (!live) return new Money(data.cents)
    live.#cents = data.cents
    return live
  }
}
class Half {
  #inner = 1
  toPortal(): number {
    return this.#inner
  }
}
class Unknown {
  n = 1
}
// the name in the text of a string or a comment is no private state: "#fake"
class Innocent {
  text = '#notPrivate'
  pattern = /#[a-z]+/
}
function OldStyle(this: { n: number }, n: number) {
  this.n = n
}
OldStyle.prototype.double = function double(this: { n: number }) {
  return this.n * 2
}
class Simulator extends EventEmitter {
  time = 0
}
class Native extends WeakRef<object> {
  toPortal(): number {
    return 1
  }
  static fromPortal(): Native {
    return new Native({})
  }
}
class NativeOnly extends WeakRef<object> {}
const named = Symbol('named')

export const classes = {
  Classy,
  Derived,
  ArrayLike,
  MapLike,
  SetLike,
  Failure,
  Bytes,
  DateLike,
  Money,
  Innocent,
  OldStyle,
  named,
  Hidden,
  HiddenMethod,
  Half,
  Simulator,
  Native,
  NativeOnly,
}

interface CarriedKind {
  readonly name: string
  readonly make: () => unknown
  /** what deep equality does not see */
  readonly check?: (copy: never, original: never) => void
}
interface RefusedKind {
  readonly name: string
  readonly make: () => unknown
  /** of `path type`, joined by newlines */
  readonly named: RegExp
  readonly unharmed?: (value: never) => void
}

const describe = (value: object) => Object.getOwnPropertyDescriptors(value)

export const carriedKinds: readonly CarriedKind[] = [
  { name: 'undefined', make: () => undefined },
  { name: 'null', make: () => null },
  { name: 'booleans', make: () => [true, false] },
  {
    name: 'integers and their limits',
    make: () => [0, 1, -1, 127, 128, 2 ** 31 - 1, -(2 ** 31), 2 ** 31, 2 ** 53 - 1, -(2 ** 53) + 1],
  },
  {
    name: 'minus zero',
    make: () => ({ zero: -0 }),
    check: (copy: { zero: number }) => expect(Object.is(copy.zero, -0)).toBe(true),
  },
  { name: 'NaN and infinities', make: () => [Number.NaN, Infinity, -Infinity, 'x'] },
  { name: 'doubles to the last bit', make: () => [0.1, 1 / 3, Number.MIN_VALUE, Number.MAX_VALUE, Number.EPSILON] },
  { name: 'bigints', make: () => [0n, -1n, 2n ** 64n, -(10n ** 40n)] },
  { name: 'strings', make: () => ['', 'plain', 'ünïcödé', '😀 日本語', 'nul\0in', 'x'.repeat(100_000)] },
  { name: 'strings with lone surrogates', make: () => ['\ud800', 'a\udc00b', '😀'.slice(0, 1)] },
  { name: 'a long string cut at a pair', make: () => `x${'😀'.repeat(550_000)}` },
  { name: 'registered symbols', make: () => [Symbol.for('mine'), Symbol.iterator, Symbol.asyncIterator] },
  { name: 'a symbol with a name given', make: () => ({ [named]: 1, value: named }) },
  { name: 'a plain object', make: () => ({ a: 1, b: { c: [] } }) },
  {
    name: 'the order of keys',
    make: () => ({ z: 1, a: 2, 10: 3, 2: 4 }),
    check: (copy: object, original: object) => expect(Reflect.ownKeys(copy)).toEqual(Reflect.ownKeys(original)),
  },
  {
    name: 'an object without prototype',
    make: () => Object.assign(Object.create(null) as object, { a: 1 }),
    check: (copy: object) => expect(Object.getPrototypeOf(copy)).toBe(null),
  },
  {
    name: 'a key called __proto__',
    make: () => JSON.parse('{"__proto__": {"x": 1}, "a": 2}') as unknown,
    check: (copy: object) => expect(Object.hasOwn(copy, '__proto__')).toBe(true),
  },
  {
    name: 'symbol keys',
    make: () => ({ [Symbol.for('k')]: { deep: 1 }, [Symbol.toStringTag]: 'Mine' }),
    check: (copy: object) => expect(Object.getOwnPropertySymbols(copy)).toHaveLength(2),
  },
  {
    name: 'keys that are not enumerable',
    make: () => Object.defineProperty({ a: 1 }, 'hidden', { value: [1], enumerable: false, writable: true }),
    check: (copy: object, original: object) => expect(describe(copy)).toEqual(describe(original)),
  },
  {
    name: 'read-only properties',
    make: () => Object.defineProperty({}, 'fixed', { value: 1, enumerable: true }),
    check: (copy: object, original: object) => expect(describe(copy)).toEqual(describe(original)),
  },
  {
    name: 'a frozen object',
    make: () => Object.freeze({ a: 1, inner: { b: 2 } }),
    check: (copy: { inner: object }) =>
      expect([Object.isFrozen(copy), Object.isFrozen(copy.inner)]).toEqual([true, false]),
  },
  {
    name: 'a sealed object',
    make: () => Object.seal({ a: 1 }),
    check: (copy) => expect(Object.isSealed(copy)).toBe(true),
  },
  {
    name: 'an object that cannot grow',
    make: () => Object.preventExtensions({ a: 1 }),
    check: (copy) => expect([Object.isExtensible(copy), Object.isSealed(copy)]).toEqual([false, false]),
  },
  {
    name: 'a prototype that is an object',
    make: () => Object.assign(Object.create({ inherited: { n: 1 } }) as object, { own: 2 }),
    check: (copy: { inherited: { n: number } }) => {
      expect(Object.keys(copy)).toEqual(['own'])
      expect(copy.inherited.n).toBe(1)
    },
  },
  { name: 'arrays', make: () => [1, 'two', [3], { four: 4 }] },
  { name: 'an array of doubles', make: () => Array.from({ length: 1_000 }, (_, at) => at / 7) },
  {
    name: 'an array with holes',
    // oxlint-disable-next-line no-sparse-arrays
    make: () => [1, , undefined, , 4],
    check: (copy: unknown[]) => expect([1 in copy, 2 in copy, 3 in copy, copy.length]).toEqual([false, true, false, 5]),
  },
  {
    name: 'a sparse array of the greatest length',
    make: () => {
      const array: unknown[] = []
      array.length = 4_294_967_295
      array[4_000_000_000] = { far: 1 }
      return array
    },
    check: (copy: unknown[]) => {
      expect(copy.length).toBe(4_294_967_295)
      expect(copy[4_000_000_000]).toEqual({ far: 1 })
    },
  },
  {
    name: 'an array with properties of its own',
    make: () => Object.assign([1, 2, 3], { extra: 'x', index: 7, '01': 'no index' }),
    check: (copy: object) => expect(Object.keys(copy)).toEqual(['0', '1', '2', 'extra', 'index', '01']),
  },
  {
    name: 'a large array with one property more',
    make: () =>
      Object.assign(
        Array.from({ length: 500 }, (_, at) => at),
        { extra: 1 },
      ),
    check: (copy: { extra: number }) => expect(copy.extra).toBe(1),
  },
  {
    name: 'a frozen array',
    make: () => Object.freeze([1, 2]),
    check: (copy) => expect(Object.isFrozen(copy)).toBe(true),
  },
  {
    name: 'a map in its order, with any keys',
    make: () =>
      new Map<unknown, unknown>([
        ['z', 1],
        [Number.NaN, 2],
        [{ key: 1 }, [3]],
        [0, 4],
        ['a', 5],
      ]),
    check: (copy: Map<unknown, unknown>) => expect([...copy.values()]).toEqual([1, 2, [3], 4, 5]),
  },
  {
    name: 'a set in its order',
    make: () => new Set<unknown>(['z', 'a', { n: 1 }, 10, 2]),
    check: (copy: Set<unknown>) => expect([...copy]).toEqual(['z', 'a', { n: 1 }, 10, 2]),
  },
  {
    name: 'a map that holds itself',
    make: () => {
      const map = new Map<unknown, unknown>()
      return map.set(map, map)
    },
    check: (copy: Map<unknown, unknown>) => expect(copy.get(copy)).toBe(copy),
  },
  { name: 'dates', make: () => [new Date(0), new Date(1_700_000_000_123), new Date(8.64e15)] },
  { name: 'an invalid date', make: () => new Date(Number.NaN) },
  {
    name: 'a regular expression where it stands',
    make: () => {
      const pattern = /a(?<name>b)+\/[/]/dgimsuy
      pattern.lastIndex = 5
      return pattern
    },
    check: (copy: RegExp) => expect([copy.lastIndex, copy.flags]).toEqual([5, 'dgimsuy']),
  },
  {
    name: 'an error with its cause, code and stack',
    make: () => Object.assign(new RangeError('far', { cause: { deep: new Error('inner') } }), { code: 'E_FAR' }),
    check: (copy: Error & { cause: { deep: Error } }, original: Error) => {
      expect(copy.stack).toBe(original.stack)
      expect(copy.cause.deep).toBeInstanceOf(Error)
      expect(Object.keys(copy)).toEqual(['code'])
    },
  },
  {
    name: 'an error of several',
    make: () => new AggregateError([new Error('one'), 2], 'both'),
    check: (copy: AggregateError) => expect(copy.errors).toHaveLength(2),
  },
  { name: 'an error of a class', make: () => new Failure('no'), check: (copy) => expect(copy).toBeInstanceOf(Failure) },
  {
    name: 'boxed primitives',
    make: () => [new Number(-0), new String('abc'), new Boolean(false), Object(1n), Object(Symbol.for('s'))],
  },
  {
    name: 'a boxed string with a property',
    make: () => Object.assign(new String('abc'), { extra: 1, 7: 'beyond' }),
    check: (copy: object) => expect(Object.keys(copy)).toEqual(['0', '1', '2', '7', 'extra']),
  },
  ...[
    Int8Array,
    Uint8Array,
    Uint8ClampedArray,
    Int16Array,
    Uint16Array,
    Int32Array,
    Uint32Array,
    Float32Array,
    Float64Array,
  ].map((type) => ({
    name: `a ${type.name}`,
    make: () => new type(Array.from({ length: 3_000 }, (_, at) => at * 3 + 0.25)),
  })),
  {
    name: 'typed arrays of bigints',
    make: () => [new BigInt64Array([-1n, 2n ** 62n]), new BigUint64Array([2n ** 64n - 1n])],
  },
  {
    name: 'NaN with other bits in a typed array',
    make: () => new Float64Array(new BigUint64Array([0x7ff8000000000123n, 0xfff0000000000001n]).buffer),
    check: (copy: Float64Array) =>
      expect(new BigUint64Array(copy.buffer)).toEqual(new BigUint64Array([0x7ff8000000000123n, 0xfff0000000000001n])),
  },
  {
    name: 'a typed array with a property',
    make: () => [Object.assign(new Uint8Array(4), { extra: 1 }), Object.assign(new Uint8Array(500), { extra: 1 })],
    check: (copy: { extra: number }[]) => expect(copy.map((each) => each.extra)).toEqual([1, 1]),
  },
  { name: 'an ArrayBuffer', make: () => Uint8Array.from({ length: 5_000 }, (_, at) => at).buffer },
  {
    name: 'a resizable ArrayBuffer',
    make: () => new ArrayBuffer(8, { maxByteLength: 64 }),
    check: (copy: ArrayBuffer) => expect([copy.resizable, copy.byteLength, copy.maxByteLength]).toEqual([true, 8, 64]),
  },
  { name: 'a DataView', make: () => new DataView(Uint8Array.of(1, 2, 3, 4, 5).buffer, 1, 3) },
  {
    name: 'views that share one memory',
    make: () => {
      const all = new Float64Array(1_000)
      return { all, part: all.subarray(10, 20), bytes: new Uint8Array(all.buffer) }
    },
    check: (copy: { all: Float64Array; part: Float64Array; bytes: Uint8Array }) => {
      copy.part[0] = 42
      expect(copy.all[10]).toBe(42)
      expect(copy.bytes.buffer).toBe(copy.all.buffer)
    },
  },
  {
    name: 'Buffers, from the pool and not',
    make: () => [Buffer.from('short'), Buffer.alloc(10_000, 7), Buffer.from([1])],
    check: (copy: Buffer[]) => expect(copy.every((each) => Buffer.isBuffer(each))).toBe(true),
  },
  { name: 'a URL', make: () => new URL('https://user@example.org:81/a?b=c#d') },
  {
    name: 'an object of a class',
    make: () => new Classy(21),
    check: (copy: Classy) => {
      expect(copy).toBeInstanceOf(Classy)
      expect(copy.twice).toBe(42)
    },
  },
  {
    name: 'an object of a derived class',
    make: () => new Derived(1),
    check: (copy) => expect(copy).toBeInstanceOf(Derived),
  },
  {
    name: 'an object of an old-style class',
    make: () => Reflect.construct(OldStyle, [4]) as unknown,
    check: (copy: { double(): number }) => expect(copy.double()).toBe(8),
  },
  {
    name: 'a # that is no private name',
    make: () => new Innocent(),
    check: (copy) => expect(copy).toBeInstanceOf(Innocent),
  },
  {
    name: 'a class derived from Array',
    make: () => ArrayLike.from([1, 2, 3]),
    check: (copy: ArrayLike) => {
      expect(copy).toBeInstanceOf(ArrayLike)
      expect([copy.label, copy.length, copy.map((each) => each)]).toEqual(['mine', 3, expect.any(ArrayLike)])
    },
  },
  {
    name: 'a class derived from Map',
    make: () => new MapLike([['a', 1]]),
    check: (copy) => expect(copy).toBeInstanceOf(MapLike),
  },
  {
    name: 'a class derived from Set',
    make: () => new SetLike([1, 2]),
    check: (copy) => expect(copy).toBeInstanceOf(SetLike),
  },
  {
    name: 'a class derived from Date',
    make: () => new DateLike(7),
    check: (copy) => expect(copy).toBeInstanceOf(DateLike),
  },
  {
    name: 'a class derived from Uint8Array',
    make: () => new Bytes(300),
    check: (copy) => expect(copy).toBeInstanceOf(Bytes),
  },
  {
    name: 'a class as a value',
    make: () => [Classy, Float64Array, Map],
    check: (copy: unknown[]) => expect(copy).toEqual([Classy, Float64Array, Map]),
  },
  {
    name: 'an object that says how it is carried',
    make: () => ({ one: new Money(5), list: [new Money(6)] }),
    check: (copy: { one: Money; list: Money[] }) => expect([copy.one.cents, copy.list[0]?.cents]).toEqual([5, 6]),
  },
  {
    name: 'shared references and cycles',
    make: () => {
      const shared = { n: 1 }
      const root: Record<string, unknown> = { a: shared, b: [shared, shared], map: new Map([[shared, shared]]) }
      root.self = root
      return root
    },
    check: (copy: { a: object; b: object[]; map: Map<object, object>; self: object }) => {
      expect(copy.b[0]).toBe(copy.a)
      expect(copy.map.get(copy.a)).toBe(copy.a)
      expect(copy.self).toBe(copy)
    },
  },
]

const notRun = (): never => {
  throw new Error('this must never run')
}

export const refusedKinds: readonly RefusedKind[] = [
  { name: 'a function', make: () => () => 1, named: /function$/m },
  { name: 'a method of a plain object', make: () => ({ run: () => 1, n: 2 }), named: /\.run function$/m },
  {
    name: 'an async function and a generator function',
    make: () => [async () => 1, function* many() {}],
    named: /\[0\] function\n.*\[1\] function/,
  },
  { name: 'a bound function', make: () => Math.max.bind(null, 1), named: /function$/m },
  { name: 'a class that is not known', make: () => class Local extends Classy {}, named: /class$/m },
  {
    name: 'a getter, without running it',
    make: () => ({
      get now() {
        return notRun()
      },
    }),
    named: /\.now accessor/,
  },
  {
    name: 'a setter',
    make: () => Object.defineProperty({}, 'put', { set: notRun, enumerable: true }),
    named: /\.put accessor/,
  },
  {
    name: 'a getter in an array',
    make: () => Object.defineProperty([1], 1, { get: notRun, enumerable: true, configurable: true }),
    named: /\[1\] accessor/,
  },
  {
    name: 'a Proxy, without touching it',
    make: () =>
      new Proxy(
        {},
        { get: notRun, ownKeys: notRun, getPrototypeOf: notRun, getOwnPropertyDescriptor: notRun, has: notRun },
      ),
    named: /Proxy$/m,
  },
  { name: 'a Proxy of an array', make: () => new Proxy([1], {}), named: /Proxy$/m },
  { name: 'a Proxy of a function', make: () => new Proxy(() => 1, { apply: notRun }), named: /Proxy$/m },
  {
    name: 'a revoked Proxy',
    make: () => {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      return proxy
    },
    named: /Proxy$/m,
  },
  {
    name: 'a Proxy as a prototype',
    make: () =>
      Object.create(
        new Proxy({}, { getPrototypeOf: notRun, get: notRun, getOwnPropertyDescriptor: notRun }),
      ) as unknown,
    named: /Proxy$/m,
  },
  { name: 'a symbol of its own', make: () => Symbol('own'), named: /Symbol\(own\)$/m },
  {
    name: 'a symbol of its own as a key',
    make: () => ({ [Symbol('own')]: 1 }),
    named: /\[Symbol\(own\)\] Symbol\(own\)/,
  },
  { name: 'a promise', make: () => Promise.resolve(1), named: /Promise$/m },
  { name: 'a WeakMap', make: () => new WeakMap(), named: /WeakMap$/m },
  { name: 'a WeakSet', make: () => new WeakSet(), named: /WeakSet$/m },
  { name: 'a WeakRef', make: () => new WeakRef({}), named: /WeakRef$/m },
  { name: 'a FinalizationRegistry', make: () => new FinalizationRegistry(() => {}), named: /FinalizationRegistry$/m },
  {
    name: 'a generator',
    make: () =>
      (function* many() {
        yield 1
      })(),
    named: /generator$/m,
  },
  {
    name: 'an async generator',
    make: () =>
      (async function* many() {
        yield 1
      })(),
    named: /generator$/m,
  },
  {
    name: 'iterators',
    make: () => [[1].values(), new Map().entries(), new Set().values(), 'abc'[Symbol.iterator](), 'a'.matchAll(/a/g)],
    named: /\[0\] iterator\n.*\[1\] iterator\n.*\[2\] iterator\n.*\[3\] iterator\n.*\[4\] iterator/,
  },
  {
    name: 'arguments',
    make: () =>
      (function given() {
        return arguments
      })(),
    named: /arguments$/m,
  },
  { name: 'a SharedArrayBuffer', make: () => new SharedArrayBuffer(8), named: /SharedArrayBuffer$/m },
  {
    name: 'a view on a SharedArrayBuffer',
    make: () => new Int32Array(new SharedArrayBuffer(8)),
    named: /\.buffer SharedArrayBuffer$/m,
  },
  {
    name: 'a view on a resizable buffer',
    make: () => new Uint8Array(new ArrayBuffer(8, { maxByteLength: 64 })),
    named: /view$/m,
  },
  {
    name: 'a buffer that was given away',
    make: () => {
      const buffer = new ArrayBuffer(8)
      structuredClone(buffer, { transfer: [buffer] })
      return buffer
    },
    named: /ArrayBuffer$/m,
  },
  {
    name: 'a socket, which stays open',
    make: () => new Socket(),
    named: /Socket$/m,
    unharmed: (socket: Socket) => {
      expect(socket.destroyed).toBe(false)
      socket.destroy()
    },
  },
  { name: 'a server', make: () => createServer(), named: /Server$/m },
  { name: 'a stream', make: () => Readable.from([1]), named: /Readable$/m },
  {
    name: 'a message port',
    make: () => new MessageChannel().port1,
    named: /MessagePort$/m,
    unharmed: (port: { close(): void }) => port.close(),
  },
  {
    name: 'a timer',
    make: () => setTimeout(() => {}, 0),
    named: /Timeout$/m,
    unharmed: (timer: NodeJS.Timeout) => clearTimeout(timer),
  },
  { name: 'an AbortController', make: () => new AbortController(), named: /AbortController$/m },
  {
    name: 'an EventEmitter that is listened to',
    make: () => new EventEmitter().on('x', () => {}),
    named: /\._events\.x function$/m,
  },
  { name: 'a formatter of the engine', make: () => new Intl.NumberFormat('en'), named: /NumberFormat$/m },
  {
    name: 'a class derived from one of the engine’s, though registered',
    make: () => new NativeOnly({}),
    named: /WeakRef$/m,
  },
  { name: 'a class with a private field', make: () => new Hidden(), named: /Hidden$/m },
  { name: 'a class with a private method', make: () => new HiddenMethod(), named: /HiddenMethod$/m },
  { name: 'a class that keeps values in a WeakMap', make: () => new Kept(), named: /Kept$/m },
  { name: 'a class that offers only toPortal', make: () => new Half(), named: /Half$/m },
  { name: 'a class that is not known', make: () => new Unknown(), named: /Unknown$/m },
  { name: 'an error class that is not known', make: () => new (class Other extends Error {})(), named: /Other$/m },
  {
    name: 'Node’s own objects with private state',
    make: () => [new URLSearchParams('a=1'), new TextEncoder(), new Blob(['x'])],
    named: /\[0\] URLSearchParams\n.*\[1\] TextEncoder\n.*\[2\] Blob/,
  },
  { name: 'the global object', make: () => globalThis, named: /globalThis/ },
  { name: 'a module', make: () => import.meta, named: /function/ },
  {
    name: 'Buffers that overlap in the pool',
    make: () => {
      const all = Buffer.from('a short text')
      return [all, all.subarray(2, 5)]
    },
    named: /\[1\] Buffer$/m,
  },
  {
    name: 'an object whose own toPortal leads back to it',
    make: () => {
      class Loop {
        toPortal(): unknown {
          return { me: this }
        }
        static fromPortal(): Loop {
          return new Loop()
        }
      }
      return new Loop()
    },
    named: /Loop$/m,
  },
]
