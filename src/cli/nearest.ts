/**
 * Edits between two words: letters put in, left out, changed or swapped with their neighbour, each once.
 * Letters beyond the 100th are not looked at.
 */
export const distance = (from: string, to: string): number => {
  const a = from.slice(0, 100)
  const b = to.slice(0, 100)
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min(at(previous, j) + 1, at(row, j - 1) + 1, at(previous, j - 1) + change)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, at(before, j - 2) + 1)
      row.push(least)
    }
    before = previous
    previous = row
  }
  return at(previous, b.length)
}

const at = (row: readonly number[], index: number): number => row[index] as number

/**
 * The known words nearest to one that is not known, best first. Near is: begins so, or differs in at most a third of its
 * letters (two at least, in a word of four letters or fewer one); letters' case does not count.
 */
export const nearest = (word: string, known: Iterable<string>, limit = 3): readonly string[] => {
  const wanted = word.toLowerCase()
  const allowed = wanted.length < 5 ? 1 : Math.max(2, Math.floor(wanted.length / 3))
  const scored: { readonly name: string; readonly far: number }[] = []
  for (const name of new Set(known)) {
    const candidate = name.toLowerCase()
    const begins = wanted.length > 1 && (candidate.startsWith(wanted) || wanted.startsWith(candidate))
    const far = begins ? 0.5 : distance(wanted, candidate)
    if (far <= allowed && far < Math.max(wanted.length, 2)) scored.push({ name, far })
  }
  return scored
    .sort((a, b) => a.far - b.far || (a.name < b.name ? -1 : 1))
    .slice(0, limit)
    .map(({ name }) => name)
}

/** What other programs call it. */
const elsewhere: Readonly<Record<string, readonly string[]>> = {
  run: ['start', 'submit', 'launch', 'exec', 'create', 'new'],
  ps: ['list', 'ls', 'jobs', 'status', 'top', 'queue'],
  show: ['info', 'describe', 'inspect', 'get'],
  logs: ['tail', 'output', 'attach', 'follow'],
  explain: ['why', 'history', 'events'],
  suspend: ['pause', 'save', 'checkpoint', 'freeze', 'hold'],
  resume: ['continue', 'restart', 'unpause', 'restore', 'thaw'],
  move: ['mv', 'migrate', 'transfer'],
  stop: ['kill', 'cancel', 'rm', 'delete', 'remove', 'end', 'abort', 'terminate'],
  cp: ['copy', 'download', 'fetch', 'pull', 'outputs'],
  offers: ['prices', 'machines', 'instances', 'market'],
  serve: ['server', 'daemon', 'up'],
  doctor: ['check', 'diagnose'],
}

/** The known word for what other programs call so. */
export const calledElsewhere = (word: string): string | null =>
  Object.entries(elsewhere).find(([, others]) => others.includes(word.toLowerCase()))?.[0] ?? null

/** ` Did you mean a or b?`, or nothing where nothing is near. */
export const didYouMean = (names: readonly string[]): string => {
  if (names.length === 0) return ''
  const last = names.at(-1) as string
  return names.length === 1 ? `; did you mean ${last}?` : `; did you mean ${names.slice(0, -1).join(', ')} or ${last}?`
}
