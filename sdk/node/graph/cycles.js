// @ts-check
/** Which of the given nodes lie on a cycle: Tarjan's strongly connected components, without recursion. */

/**
 * @param {readonly (readonly number[] | undefined)[]} edges @param {number} count how many nodes @param {readonly number[]} asked
 * @returns {number[]} those of `asked` that can be reached from themselves
 */
export const inCycle = (edges, count, asked) => {
  const index = new Int32Array(count).fill(-1)
  const low = new Int32Array(count)
  const open = new Uint8Array(count)
  const cyclic = new Uint8Array(count)
  const next = new Int32Array(count)
  /** @type {number[]} */
  const component = []
  let counter = 0
  for (const start of asked) {
    if (index[start] !== -1) continue
    const stack = [start]
    while (stack.length > 0) {
      const node = /** @type {number} */ (stack.at(-1))
      if (index[node] === -1) {
        index[node] = low[node] = counter++
        open[node] = 1
        component.push(node)
      }
      const targets = edges[node] ?? []
      const at = /** @type {number} */ (next[node])
      if (at < targets.length) {
        next[node] = at + 1
        const target = /** @type {number} */ (targets[at])
        if (target === node) cyclic[node] = 1
        if (index[target] === -1) stack.push(target)
        else if (open[target])
          low[node] = Math.min(/** @type {number} */ (low[node]), /** @type {number} */ (index[target]))
        continue
      }
      stack.pop()
      const parent = stack.at(-1)
      if (parent !== undefined)
        low[parent] = Math.min(/** @type {number} */ (low[parent]), /** @type {number} */ (low[node]))
      if (low[node] === index[node]) {
        const size = component.length - component.lastIndexOf(node)
        for (let left = size; left > 0; left--) {
          const member = /** @type {number} */ (component.pop())
          open[member] = 0
          if (size > 1) cyclic[member] = 1
        }
      }
    }
  }
  return asked.filter((node) => cyclic[node] === 1)
}
