/** For tests: a state saved by the walker and put back into another one, without processes and sockets. */
import digest from '../digest.cjs'
import { Classes } from './classes.js'
import { Origins } from './origins.js'
import type { RefusedValue } from './refusals.js'
import { Restore } from './restore.js'
import { Memory, type PlacedBuffer } from '../incoming.js'
import { Walk } from './walk.js'

export interface Carried {
  readonly graph: Buffer
  readonly buffers: Buffer
  readonly layout: readonly PlacedBuffer[] | null
  readonly counts: { readonly objects: number; readonly customs: number }
  readonly digest: string
}

/** A job's side as it is after `job.state(state)`. */
export class Side<S extends object> {
  readonly classes = new Classes()
  readonly origins = new Origins()
  readonly state: S

  constructor(state: S, classes: Readonly<Record<string, Function | symbol>> = {}) {
    this.state = state
    for (const [name, value] of Object.entries(classes)) this.classes.register(name, value)
    new Walk(this.classes, this.origins, { discover: true }).run(state, () => {})
  }

  /** What is refused, or the streams. */
  save(): Carried | readonly RefusedValue[] {
    const walk = new Walk(this.classes, this.origins)
    walk.run(this.state, () => {})
    if (walk.refusals.any) return walk.refusals.list()
    const parts: Buffer[] = []
    new Walk(this.classes, this.origins, { customs: walk.customs }).run(this.state, (bytes) =>
      parts.push(Buffer.from(bytes)),
    )
    const graph = Buffer.concat(parts)
    const buffers = Buffer.alloc(walk.bufferBytes)
    for (const { offset, bytes } of walk.buffers) buffers.set(bytes, offset)
    const hash = new digest.DigestOfBytes()
    hash.stream('graph')
    hash.update(graph)
    hash.stream('buffers')
    hash.update(buffers)
    const counts = { objects: walk.objects.length, customs: walk.customNumbers.length }
    const layout = walk.buffers.map(({ offset, bytes }): PlacedBuffer => [offset, bytes.length, null])
    return { graph, buffers, layout, counts, digest: hash.hex() }
  }

  carried(): Carried {
    const saved = this.save()
    if ('graph' in saved) return saved
    throw new Error(`refused: ${saved.map((value) => `${value.path}: ${value.type}: ${value.reason}`).join('\n')}`)
  }

  refused(): readonly RefusedValue[] {
    const saved = this.save()
    return 'graph' in saved ? [] : saved
  }

  /** Puts it back into this side's state; gives what was refused. */
  restore(from: Carried): readonly RefusedValue[] {
    const memory = new Memory(from.buffers.length, from.layout, null)
    memory.place(0, from.buffers)
    const restore = new Restore(from.graph, memory, from.counts, this.classes, this.origins)
    restore.run(this.state)
    return restore.refusals.list()
  }
}
