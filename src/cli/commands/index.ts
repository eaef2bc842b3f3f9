import type { Target } from '../context.ts'

interface Listed {
  readonly brief: string
  readonly hidden?: boolean
  /** one file a command, loaded when it is the one that was typed */
  load(): Promise<{ readonly command: Target }>
}

/** Every command, in the order of the help. */
export const commands = {
  run: { brief: 'Run a command as a job and follow its log', load: () => import('./run.ts') },
  ps: { brief: 'List jobs', load: () => import('./ps.ts') },
  show: { brief: 'Show one job', load: () => import('./show.ts') },
  logs: { brief: "Print a job's log, or follow it", load: () => import('./logs.ts') },
  explain: { brief: 'Say why a job is where it is', load: () => import('./explain.ts') },
  checkpoints: { brief: "List a job's checkpoints", load: () => import('./checkpoints.ts') },
  offers: { brief: 'List where a job could run, and at what price', load: () => import('./offers.ts') },
  suspend: { brief: 'Save a running job and stop it, to go on later', load: () => import('./suspend.ts') },
  resume: { brief: 'Go on with a suspended job', load: () => import('./resume.ts') },
  move: { brief: 'Move a running job to another machine', load: () => import('./move.ts') },
  stop: { brief: 'End a job', load: () => import('./stop.ts') },
  cp: { brief: "Copy a job's output here", load: () => import('./cp.ts') },
  connections: { brief: 'List the places that are connected', load: () => import('./connections.ts') },
  practice: { brief: 'Play the provider of the practice cloud', load: () => import('./practice.ts') },
  serve: { brief: 'Run the control plane', load: () => import('./serve.ts') },
  doctor: { brief: 'Check this installation', load: () => import('./doctor.ts') },
  completion: { brief: 'Print the completions for a shell', load: () => import('./completion.ts') },
  version: { brief: 'Print the versions', load: () => import('./version.ts') },
} as const satisfies Record<string, Listed>

export type CommandName = keyof typeof commands
export const commandNames = Object.keys(commands) as readonly CommandName[]
export const isCommand = (name: string): name is CommandName => Object.hasOwn(commands, name)
