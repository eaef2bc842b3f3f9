/** The stream of a checkpoint in which declared outputs lie, as a tar archive. */
export const outputsStream = 'outputs'

/** The stream of a checkpoint in which the end of a log lies that nobody had heard when it was saved. */
export const lastLogStream = 'agent:log'

/** Streams that the agent puts beside the job's own; the SDK never sees them. */
export const agentStream = (name: string): boolean => name === outputsStream || name.startsWith('agent:')
