import type { Money } from '../core/money/index.ts'
import { messageOf } from './files.ts'
import type { Provider } from './port.ts'
import { ProviderError } from './port.ts'

/** A connection as it is kept: a name, the provider behind it, and the provider's own settings. */
export interface ConnectionEntry {
  readonly connection: string
  readonly provider: string
  readonly settings: Readonly<Record<string, unknown>>
}

export interface OpenOptions {
  /** Portal's data directory */
  readonly home: string
  readonly entries: readonly ConnectionEntry[]
  /** programs that providers on this machine start: `dist/agent.js` and `dist/practice.js`, or their sources */
  readonly programs: { readonly agent: string; readonly practice: string }
}

type Open = (options: OpenOptions, entry: ConnectionEntry) => Promise<Provider>

/** Each provider is loaded when a connection needs it. A new one is a folder and a line here. */
const adapters: Readonly<Record<string, Open>> = {
  'this-machine': async ({ home, programs }, { connection, settings }) => {
    const { openThisMachine } = await import('./this-machine/index.ts')
    const price = priceOf(settings)
    return openThisMachine({ home, connection, agentEntry: programs.agent, ...(price && { price }) })
  },
  practice: async ({ home, programs }, { connection, settings }) => {
    const { openPractice } = await import('./practice/index.ts')
    return openPractice({ home, connection, settings, agentEntry: programs.agent, practiceEntry: programs.practice })
  },
}

/** The connections of a fresh installation: the machine itself, and a cloud to practise on. */
export const firstConnections: readonly ConnectionEntry[] = [
  { connection: 'this-machine', provider: 'this-machine', settings: {} },
  { connection: 'practice', provider: 'practice', settings: {} },
]

/** Opens the provider of every connection, by the connection's name. Throws when one names a provider that does not exist. */
export async function openProviders(options: OpenOptions): Promise<Map<string, Provider>> {
  const opened = new Map<string, Provider>()
  for (const entry of options.entries) {
    const open = adapters[entry.provider]
    if (open === undefined)
      throw new ProviderError(
        'not_found',
        `connection ${entry.connection}: there is no provider ${JSON.stringify(entry.provider)}; known: ${Object.keys(adapters).join(', ')}`,
      )
    try {
      opened.set(entry.connection, await open(options, entry))
    } catch (error) {
      throw new Error(`connection ${entry.connection}: ${messageOf(error)}`, { cause: error })
    }
  }
  return opened
}

/**
 * Ends what providers run on this machine for a data directory: the practice cloud with its machines, and the host's agent. For what
 * must leave nothing behind (a demo, a test, an uninstall), once no control plane serves and no job runs on the machine itself.
 */
export async function endAllHere({ home, programs }: Pick<OpenOptions, 'home' | 'programs'>): Promise<void> {
  const { openPractice } = await import('./practice/index.ts')
  const { openThisMachine } = await import('./this-machine/index.ts')
  const practice = await openPractice({ home, agentEntry: programs.agent, practiceEntry: programs.practice })
  await practice.shutdown()
  const machine = await openThisMachine({ home, agentEntry: programs.agent, watch: false })
  await machine.stopAgent()
  await machine.close()
}

/** `price` of an owned machine's connection (`connection.price`): what an hour costs its owner. */
function priceOf(settings: ConnectionEntry['settings']): Money | null {
  const { price } = settings
  if (typeof price !== 'object' || price === null || !('micros' in price) || !('currency' in price)) return null
  const { micros, currency } = price
  return typeof micros === 'number' && typeof currency === 'string' ? { micros, currency } : null
}
