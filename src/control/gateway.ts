import type { ToControl } from '../contract/agent.ts'
import type { Store } from '../store/port.ts'
import type { Agents } from './agents.ts'
import type { AgentGateway, AgentLink, AgentSession } from './http/api.ts'
import { agentOf } from './keys.ts'
import { jobIdOf } from './logs.ts'

export interface GatewayOptions {
  readonly key: Uint8Array
  readonly store: Store
  readonly agents: Agents
  /** the outputs of an attempt arrived: its job may have waited for them */
  readonly stored: (jobId: string) => void
  readonly closed: () => boolean
}

/** The agents' door: who they are, and what of theirs is heard. An agent speaks only for the attempts that were given to it. */
export function openGateway({ key, store, agents, stored, closed }: GatewayOptions): AgentGateway {
  const attemptsOf = (agentId: string) => store.attemptsOfAgent(agentId, { alive: true })
  return {
    authenticate: async (token) => agentOf(key, token),

    connected(agentId: string, link: AgentLink): AgentSession {
      // what it says is heard once it is known what is its own; until then it waits in order
      let session: AgentSession | null = null
      let gone = false
      const early: ToControl[] = []
      const open = async (): Promise<void> => {
        try {
          const attempts = await attemptsOf(agentId)
          if (gone || closed()) return
          for (const attempt of attempts) agents.serve(attempt)
        } catch {
          return link.close('the store could not be read')
        }
        session = agents.connected(agentId, link)
        for (const message of early) session.received(message)
      }
      void open()
      return {
        received(message) {
          if (session) session.received(message)
          else early.push(message)
        },
        closed() {
          gone = true
          session?.closed()
        },
      }
    },

    async mayRead(agentId, workdir) {
      for (const { jobId } of await attemptsOf(agentId)) {
        const job = await store.get('jobs', jobId)
        if (job?.spec.workdir === workdir) return true
      }
      return false
    },

    async mayWrite(agentId, attemptId) {
      const attempt = await store.get('attempts', attemptId)
      if (!attempt || attempt.agentId !== agentId || attempt.state !== 'bound') return false
      return (await store.get('jobs', attempt.jobId))?.current === attempt.token
    },

    stored: async (_agentId, attemptId) => stored(jobIdOf(attemptId)),
  }
}
