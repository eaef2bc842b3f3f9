/** Plays scripts until one finds something; prints how many that took and what it found, or `none`. */
import fc from 'fast-check'
import { failed } from './failed.ts'
import { play, scripts } from './script.ts'

const [runs, seed] = process.argv.slice(2).map(Number)

const wrongIn = async (script: Parameters<typeof play>[0]): Promise<string | null> => {
  try {
    return (await play(script))[0] ?? null
  } catch (error) {
    return String(error)
  }
}

let played = 0
const tell = (found: string): never => {
  console.log(`${played}\n${found}`)
  process.exit(0)
}

for (const { script } of failed) {
  const wrong = await wrongIn(script)
  if (wrong !== null) tell(wrong)
}
for (const script of fc.sample(scripts, { numRuns: runs ?? 300, seed: seed ?? 1 })) {
  played += 1
  const wrong = await wrongIn(script)
  if (wrong !== null) tell(wrong)
}
console.log('none')
process.exit(0)
