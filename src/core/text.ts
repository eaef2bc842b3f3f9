/** The one of `known` that is nearest to what was typed, if it is near enough to be meant (Damerau-Levenshtein). */
export function nearest(typed: string, known: readonly string[]): string | null {
  const allowed = Math.max(1, Math.floor(typed.length / 3))
  let best: string | null = null
  let bestDistance = allowed + 1
  for (const candidate of known) {
    const prefix = candidate.startsWith(typed) && typed.length > 0
    const distance = prefix ? Math.min(1, candidate.length - typed.length) : editDistance(typed, candidate)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

export const didYouMean = (typed: string, known: readonly string[]): string => {
  const near = nearest(typed, known)
  return near === null ? '' : `; did you mean ${near}?`
}

/** Edits from one to the other: insertions, deletions, substitutions and swapped neighbours. */
function editDistance(a: string, b: string): number {
  let [before, previous] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let least = Math.min(
        (row[j - 1] as number) + 1,
        (previous[j] as number) + 1,
        (previous[j - 1] as number) + (same ? 0 : 1),
      )
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (before[j - 2] as number) + 1)
      row.push(least)
    }
    ;[before, previous] = [previous, row]
  }
  return previous[b.length] as number
}
