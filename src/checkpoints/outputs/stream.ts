/** The stream of a checkpoint in which declared outputs lie, as a tar archive. */
export const outputsStream = 'outputs'

/** Streams that the agent puts beside the job's own; the SDK never sees them. */
export const agentStream = (name: string): boolean => name === outputsStream || name.startsWith('agent:')
