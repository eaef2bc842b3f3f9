import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { AttemptState } from './model.ts'

const fileOf = (folder: string): string => join(folder, 'attempt.json')

/** Writes what is known of an attempt so that it is there after a crash of anything: whole, or as it was before. */
export const saveState = (folder: string, state: AttemptState): void => {
  const path = fileOf(folder)
  const file = openSync(`${path}.new`, 'w', 0o600)
  try {
    writeSync(file, JSON.stringify(state))
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(`${path}.new`, path)
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
