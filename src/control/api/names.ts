import type { Random } from '../ports.ts'

/** A name that says what the job runs: `python3 train.py` → `train-7k2m`. */
export function makeName(command: readonly string[], random: Random): string {
  const script = command.slice(1).find((argument) => /^[^-].*\.(py|mjs|cjs|js|ts|sh|rb|pl|jl|r)$/i.test(argument))
  const base = (script ?? command[0] ?? 'job').split('/').at(-1) ?? 'job'
  const plain = base
    .toLowerCase()
    .replace(/\.[a-z0-9]+$/, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 40)
  return `${plain || 'job'}-${random.letters(4)}`
}
