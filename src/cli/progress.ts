import type { Cli } from './context.ts'
import { clip, duration } from './format.ts'

/** What takes less than this is shown nothing about. */
const quietFor_ms = 1000
const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

export interface Progress {
  /** what is being done now: `saving 120 MiB` */
  step(text: string): void
  /** takes the line away, so that a lasting one can be printed */
  clear(): void
  done(): void
}

/** One line on stderr that says what is going on and since when; only on a terminal, and only after a second. */
export const progress = (cli: Cli, first: string): Progress => {
  if (!cli.live) return { step: () => {}, clear: () => {}, done: () => {} }
  const started = performance.now()
  let text = first
  let frame = 0
  let shown = false
  const clear = () => {
    if (shown) cli.process.stderr.write('\r\x1b[2K')
    shown = false
  }
  const draw = () => {
    const elapsed = performance.now() - started
    if (elapsed < quietFor_ms) return
    const line = clip(
      `${frames[frame++ % frames.length] as string} ${text} (${duration(Math.floor(elapsed / 1000) * 1000)})`,
      cli.width ?? 80,
    )
    cli.process.stderr.write(`\r\x1b[2K${cli.errorColors.dim(line)}`)
    shown = true
  }
  const timer = setInterval(draw, 100)
  timer.unref()
  return {
    step: (next) => {
      text = next
      if (shown) draw()
    },
    clear,
    done: () => {
      clearInterval(timer)
      clear()
    },
  }
}
