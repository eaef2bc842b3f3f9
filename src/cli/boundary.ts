import type { Command } from '@stricli/core'
import type { Cli, Target } from './context.ts'

/**
 * Finds where the flags of `portal run` end and the job's command begins, and says so with `--`: after the first word
 * that is no flag everything is the command's, its flags too (`portal run --name x python3 train.py --name y`).
 *
 * @param inputs `run` and what was typed after it
 * @param target the command, whose parameters say which flags take a value
 */
export const splitAtCommand = (inputs: readonly string[], target: Target): readonly string[] => {
  if (!('parameters' in target)) return inputs
  const { flags = {}, aliases = {} } = (target as Command<Cli>).parameters
  const takesValue = (name: string): boolean => {
    const known = flags[camel(name)] ?? flags[name]
    return known !== undefined && (known.kind === 'parsed' || known.kind === 'enum')
  }
  for (let i = 1; i < inputs.length; i++) {
    const word = inputs[i] as string
    if (word === '--') return inputs
    if (word.startsWith('--')) {
      if (!word.includes('=') && takesValue(word.slice(2))) i++
    } else if (word.startsWith('-') && word.length > 1) {
      const last = aliases[word.at(-1) as keyof typeof aliases]
      if (!word.includes('=') && last !== undefined && takesValue(last)) i++
    } else return [...inputs.slice(0, i), '--', ...inputs.slice(i)]
  }
  return inputs
}

const camel = (name: string): string => name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
