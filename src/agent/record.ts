import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { AttemptState } from './model.ts'

const fileOf = (folder: string): string => join(folder, 'attempt.json')

/**
 * Writes what is known of an attempt: whole, or as it was before. After that it survives the end of this process; where
 * `durable`, which costs 3 ms, that of the machine too.
 */
export const saveState = (folder: string, state: AttemptState, durable = true): void => {
  const path = fileOf(folder)
  const file = openSync(`${path}.new`, 'w', 0o600)
  try {
    writeSync(file, JSON.stringify(state))
    if (durable) fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(`${path}.new`, path)
  if (!durable) return
  const directory = openSync(folder, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

/** Null: nothing was ever written there. Throws where the file is not what this program writes. */
export const loadState = (folder: string): AttemptState | null => {
  let text: string
  try {
    text = readFileSync(fileOf(folder), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  const state = JSON.parse(text) as AttemptState
  if (state.format !== 1)
    throw new Error(`${fileOf(folder)} is of format ${String(state.format)}: written by a newer Portal, run that one`)
  return state
}
