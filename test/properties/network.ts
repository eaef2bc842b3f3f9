import type { ToAgent, ToControl } from '../../src/contract/agent.ts'
import type { AgentLink, AgentSession } from '../../src/control/http/api.ts'
import type { Chance } from './chance.ts'
import type { VirtualClock } from './clock.ts'
import type { Wire } from './model-machine.ts'

/** Who takes a connection at the other end. */
export interface Door {
  readonly isOpen: () => boolean
  readonly connected: (agentId: string, link: AgentLink) => AgentSession
}

/**
 * The wire between agents and control planes. One connection keeps its order, as TCP does; it is slow at times, breaks with
 * whatever is under way, and one end may notice that long after the other: what was sent before still arrives then, at a session
 * that is over. Orders and grants may come twice, late, over a connection that came after.
 */
export class Network {
  /** until then no connection comes about, and those that there were are broken */
  downUntil = 0
  /** until then messages take up to this long */
  slow = { until: 0, atMost: 0 }
  /** until then orders and grants come again, later */
  doublesUntil = 0
  readonly #clock: VirtualClock
  readonly #chance: Chance
  readonly #wires = new Set<{ break(): void }>()

  constructor(clock: VirtualClock, chance: Chance) {
    this.#clock = clock
    this.#chance = chance
  }

  goDown(duration: number): void {
    this.downUntil = this.#clock.now() + duration
    for (const wire of this.#wires) wire.break()
  }

  /** @param share how many of them, by chance */
  breakSome(share: number): void {
    for (const wire of this.#wires) if (this.#chance.happens(share)) wire.break()
  }

  /** @returns null: nobody answers */
  connect(
    door: Door | null,
    agentId: string,
    received: (message: ToAgent) => void,
    again: (message: ToAgent) => void,
    closed: () => void,
  ): Wire | null {
    if (!door?.isOpen() || this.#clock.now() < this.downUntil) return null
    // each end has its own view of whether there is a connection
    let agentsEnd = true
    let controlsEnd = true
    const toAgent = this.#line()
    const toControl = this.#line()
    const wire = {
      break: () => {
        this.#wires.delete(wire)
        if (agentsEnd) {
          agentsEnd = false
          closed()
        }
        // the other end notices now, or when its own patience is over
        this.#clock.after(this.#chance.happens(0.3) ? this.#chance.between(0, 20_000) : 1, () => {
          if (controlsEnd) {
            controlsEnd = false
            if (door.isOpen()) session.closed()
          }
        })
      },
    }
    this.#wires.add(wire)
    const session = door.connected(agentId, {
      send: (message) => {
        if (!controlsEnd || !door.isOpen()) return
        const copy = structuredClone(message)
        toAgent(() => agentsEnd && received(copy))
        if (this.#clock.now() < this.doublesUntil && this.#chance.happens(0.5))
          this.#clock.after(this.#chance.between(1, 120_000), () => again(structuredClone(copy)))
      },
      close: () => {
        controlsEnd = false
        this.#clock.after(1, () => wire.break())
      },
    })
    return {
      send: (message: ToControl) => {
        if (!agentsEnd) return
        if (!door.isOpen()) return wire.break()
        const copy = structuredClone(message)
        // what was sent before a break may still arrive; what is under way may also be lost
        toControl(() => {
          if (controlsEnd && door.isOpen() && (agentsEnd || this.#chance.happens(0.5))) session.received(copy)
        })
      },
      close: () => wire.break(),
    }
  }

  /** One direction of one connection: in order, each message after a time of its own. */
  #line(): (arrive: () => void) => void {
    let last = 0
    return (arrive) => {
      const now = this.#clock.now()
      const atMost = now < this.slow.until ? this.slow.atMost : 5
      last = Math.max(last, now + this.#chance.between(1, atMost))
      this.#clock.after(last - now, arrive)
    }
  }
}
