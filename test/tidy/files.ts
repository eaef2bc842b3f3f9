import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What the house is made of: every file that belongs to the repository, committed or about to be. */
export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface SourceFile {
  /** from the top of the repository, with slashes */
  readonly path: string
  readonly text: string
}

const binary = /\.(png|ico|woff2?|gz|zst|db|pdf)$/

function paths(): readonly string[] {
  try {
    const listing = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
    return execFileSync('git', listing, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).split('\0')
  } catch {
    // an unpacked archive has no repository
    return globSync('**/*.*', { cwd: root, exclude: (name) => ['node_modules', 'dist', '.git'].includes(name) })
  }
}

export const files: readonly SourceFile[] = paths()
  .filter((path) => path !== '' && !binary.test(path) && existsSync(join(root, path)))
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))

export const exists = (path: string): boolean => existsSync(join(root, path))

const isTest = (path: string): boolean => /\.(test|bench)\.ts$/.test(path)
export const sources = files.filter(({ path }) => /^src\/.*\.ts$/.test(path))
export const productSources = sources.filter(({ path }) => !isTest(path))
export const tests = files.filter(({ path }) => isTest(path) || /^sdk\/python\/.*test.*\.py$/.test(path))

/** One import of a file: what it names, whether only types come of it, whether it happens when it is reached. */
export interface Import {
  readonly from: string
  /** the file imported, from the top of the repository; null: a package */
  readonly path: string | null
  readonly typesOnly: boolean
  readonly lazy: boolean
}

const importing = /^\s*(?:import|export)\s+(type\s)?(?:[^'";]*?\sfrom\s+)?'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm

export const importsOf = ({ path, text }: SourceFile): readonly Import[] =>
  [...text.matchAll(importing)].map((match) => {
    const from = (match[2] ?? match[3]) as string
    return {
      from,
      path: from.startsWith('.') ? relative(root, join(root, dirname(path), from)) : null,
      typesOnly: match[1] !== undefined || /^\s*import\s*\{(\s*type\s[^,}]+,?)+\s*\}/.test(match[0]),
      lazy: match[3] !== undefined,
    }
  })

/** The code without its comments and the inside of its plain strings, lines kept: a word in a sentence is no call. */
export const codeOf = (text: string): string =>
  text
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ' '))
    .replace(/'(?:[^'\\\n]|\\.)*'/g, "''")
    .replace(/(^|[^:])\/\/.*$/gm, '$1')

/** `src/core/x.ts:12` for each such line. */
export const linesWith = ({ path, text }: SourceFile, is: (line: string) => boolean): readonly string[] =>
  text.split('\n').flatMap((line, n) => (is(line) ? [`${path}:${n + 1}`] : []))
