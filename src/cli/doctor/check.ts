/** What one look at the installation found: one line, and what to do where it is not in order. */
export interface Finding {
  readonly name: string
  readonly is: 'ok' | 'warn' | 'fail'
  readonly says: string
  /** empty where nothing is to be done */
  readonly advice: string
}

export const ok = (name: string, says: string): Finding => ({ name, is: 'ok', says, advice: '' })
export const warn = (name: string, says: string, advice: string): Finding => ({ name, is: 'warn', says, advice })
export const fail = (name: string, says: string, advice: string): Finding => ({ name, is: 'fail', says, advice })

/** A check that throws is itself a finding: the doctor always comes to its end. */
export const guarded = async (
  name: string,
  look: () => Promise<Finding | readonly Finding[]>,
): Promise<readonly Finding[]> => {
  try {
    const found = await look()
    return Array.isArray(found) ? (found as readonly Finding[]) : [found as Finding]
  } catch (error) {
    const says = error instanceof Error ? error.message : String(error)
    return [fail(name, `could not be checked: ${says}`, 'look at the message; run again with PORTAL_DEBUG=1')]
  }
}
