import { join } from 'node:path'
import type { Offer } from '../../core/jobs/model.ts'
import { money, type Money } from '../../core/money/index.ts'
import { privateFolder } from '../files.ts'
import { ProviderError, type Observed, type Provider, type StartRequest } from '../port.ts'
import { HostAgent } from './agent.ts'
import { capacityOfThisMachine, type Capacity } from './capacity.ts'

/** The name of the machine that Portal runs on: its offer's id and its machine's id in one. */
export const thisMachine = 'this-machine'

export interface ThisMachineOptions {
  /** Portal's data directory */
  readonly home: string
  /** the connection's name, as offers carry it */
  readonly connection?: string
  /** the agent's program: `dist/agent.js`, from source `src/agent/main.ts` */
  readonly agentEntry: string
  /** what an hour on it costs its owner; nothing unless somebody says so */
  readonly price?: Money
  /** what it has, where that should not be measured */
  readonly capacity?: Capacity
  /** whether an agent that died unseen is started again at once; it is, unless somebody says no */
  readonly watch?: boolean
}

/** A provider with one machine, owned: several jobs at once, one agent for all of them, never ended. */
export interface ThisMachine extends Provider {
  /** Ends the agent (the jobs that it runs have keepers of their own): for what must leave nothing behind. */
  stopAgent(): Promise<void>
}

/** Opens the machine that Portal itself runs on as a place for jobs. How much of it is in use is the caller's to count. */
export async function openThisMachine(options: ThisMachineOptions): Promise<ThisMachine> {
  const folder = join(options.home, 'agents', thisMachine)
  await privateFolder(join(options.home, 'agents'))
  await privateFolder(folder)
  const agent = new HostAgent(folder, options.agentEntry)
  if (options.watch !== false) await agent.adopt()
  const capacity = options.capacity ?? (await capacityOfThisMachine())
  const offer: Offer = {
    id: thisMachine,
    connection: options.connection ?? thisMachine,
    provider: thisMachine,
    region: '',
    zone: '',
    type: thisMachine,
    market: 'owned',
    price: options.price ?? money(0),
    notice: null,
    lifetime: null,
    ...capacity,
  }

  const known = (id: string): void => {
    if (id !== thisMachine)
      throw new ProviderError('not_found', `no offer ${JSON.stringify(id)} here; the only one is ${thisMachine}`)
  }

  return {
    name: thisMachine,
    owns: 'owned',
    hardStop: 'guest',
    idempotentStart: true,
    settles: 0,

    // said whatever is needed: that it is too small is the caller's to explain
    offers: async () => [offer],

    quote: async ({ id }) => {
      known(id)
      return { price: offer.price }
    },

    start: async ({ offer: { id }, bootstrap }: StartRequest) => {
      known(id)
      await agent.ensure(bootstrap)
      return { machineId: thisMachine }
    },

    observe: async (machineId): Promise<Observed> => {
      if (machineId !== thisMachine) return { is: 'not_found' }
      if (await agent.isRunning()) return { is: 'alive', machineId }
      // the machine is there, since this runs on it, and jobs outlive their agent: nothing is known to have ended
      return { is: 'unknown', error: `the agent on this machine does not run: ${await agent.whyNot()}` }
    },

    // a person's machine is never ended
    end: async () => {},

    // it was not rented and carries no tag
    list: async () => [],

    stopAgent: () => agent.stop(),
    close: async () => agent.close(),
  }
}
