/**
 * Portal's SDK for jobs in Node. Outside Portal everything here does nothing, and the script runs as it is.
 *
 * An attempt executes from `job.state()` on: the lines above it run again at every attempt, and on a move's target while
 * the source still holds the job. What must happen once goes into `job.onStart`.
 */
export interface Job {
  /**
   * Says which values make up the job's state, and gives the same object back, restored in place: objects that the
   * script already holds get their own content back. The thread stands still here until the attempt may run.
   * Once in a job; throws `TypeError` for anything but a plain object, `Error` when called twice.
   */
  state<S extends object>(initial: S): Promise<S>

  /**
   * The steps that are left: from `state[key]` up to but not including `end`. Between them lie the safe points. The next
   * step is written into the state before a save can happen, after the last one too.
   */
  steps<K extends string>(state: { [P in K]: number }, key: K, end: number): IterableIterator<number>

  /** The same for bodies that wait. Nothing that a body started may be under way when it ends. */
  stepsAsync<K extends string>(state: { [P in K]: number }, key: K, end: number): AsyncIterableIterator<number>

  /**
   * Asks for a checkpoint: at the next safe point inside a loop over `job.steps`, at once outside of one, where the call
   * is a safe point itself.
   */
  checkpoint(): void

  /** A safe point of one's own, for jobs that loop otherwise: the state must be whole here. */
  safePoint(): void

  /** How far the job is, in any unit. Shown, and used to judge whether a move is worth it. */
  progress(done: number, total?: number): void

  /**
   * Runs at a safe point before a save, and before a look at the state that would else find something it cannot carry:
   * the place to close connections. What `fn` returns undoes it, when the job goes on here. Synchronous.
   */
  onSuspend(fn: () => void | (() => void)): void

  /** Runs once the attempt may execute, at once if it does already: for effects that must not happen twice. */
  onStart(fn: () => unknown): unknown

  /** The number of this attempt; 0 outside Portal. */
  readonly attempt: number

  /** Whether this attempt began from a checkpoint; known after `job.state()`. */
  readonly restored: boolean

  /** Milliseconds that the job has run past `job.state()`, all attempts together. A stored `performance.now()` means nothing after a move. */
  clock(): number

  /**
   * Classes of which objects may come into the state later, by their names or by names of one's own. (Classes of objects
   * that are in the state at `job.state()` are known.) Symbols can be given names here too.
   */
  classes(...classes: (Function | Readonly<Record<string, Function | symbol>>)[]): void

  /** A seeded generator that is carried when it is part of the state, which `Math.random` cannot be. */
  random(seed?: number | string): SeededRandom
}

/** A small seeded generator (sfc32). */
export interface SeededRandom {
  /** As `Math.random`: from 0 up to but not including 1, with 53 bits. */
  next(): number
  /** A whole number from 0 up to but not including `end`. */
  integer(end: number): number
  /** 32 random bits, from 0 to 2^32 - 1. */
  bits(): number
}

/** What a class may offer so that its objects are carried whatever they keep inside. */
export interface Portable<Data = unknown> {
  /** What makes up the object; anything that can be carried itself. Called at safe points: no effects. */
  toPortal(): Data
}
export interface PortableClass<Data = unknown, Instance extends Portable<Data> = Portable<Data>> {
  /** The object again. `live`: the object that the script holds in its place; fill it and return it. */
  fromPortal(data: Data, live: Instance | undefined): Instance
}

export declare const job: Job
