/** Bundles what is started often, so that it starts fast: the command line, the control plane, the agent, the practice cloud. */
import { build, type BuildOptions, type Plugin } from 'esbuild'
import { isBuiltin } from 'node:module'
import { copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs'

const entries = {
  control: 'src/control/main.ts',
  agent: 'src/agent/main.ts',
  practice: 'src/providers/practice/cloud/main.ts',
}
const present = Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(file)))
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

/**
 * Node's own modules by name instead of by `import`, which reads every one of their exports: of node:http a WebSocket
 * among them, which loads a whole other HTTP client (28 ms instead of 2). Asked for by name they are also loaded only
 * once the code that uses them runs.
 *
 * @param which the modules; the others are imported as they stand
 */
const byName = (which: RegExp): Plugin => ({
  name: 'builtins-by-name',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: which }, ({ path }) =>
      isBuiltin(path) ? { path: path.replace('node:', ''), namespace: 'builtin' } : null,
    )
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('node:${path}')`,
    }))
  },
})

/**
 * The same for our own files, down to the names that they use: a wrapper around the whole module would still read all of
 * its exports, and some of node:util's load what nobody asked for (5 ms).
 */
const ownByName: Plugin = {
  name: 'own-builtins-by-name',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]src[/\\](cli|contract)[/\\].*\.ts$/ }, ({ path }) => ({
      loader: 'ts',
      contents: readFileSync(path, 'utf8').replace(
        /^import \{([^}]*)\} from '(node:[a-z_/]+)'$/gm,
        (_, names: string, module: string) =>
          `const {${names.replace(/\btype \w+,?/g, '').replace(/(\w+) as (\w+)/g, '$1: $2')}} = process.getBuiltinModule('${module}')`,
      ),
    }))
  },
}

/** Files that are loaded by themselves, and where they are imported from. */
const apart: Readonly<Record<string, string>> = {
  // the compile cache serves only what is loaded after it was turned on
  './app.ts': 'main.ts',
  // half of the command line's bytes, needed by two commands
  './tar.ts': '',
  '../tar.ts': '',
}
const loadedApart: Plugin = {
  name: 'loaded-apart',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\.?\/(app|tar)\.ts$/ }, ({ path, importer }) =>
      importer.endsWith(apart[path] ?? 'nowhere') && importer !== ''
        ? { path: `./${path.replace(/.*\/(\w+)\.ts$/, '$1')}.js`, external: true }
        : null,
    )
  },
}

const shared: BuildOptions = {
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  sourcemap: 'linked',
  // fewer bytes to read and parse at each start; names stay, since errors and logs show them
  minifyWhitespace: true,
  minifySyntax: true,
  define: { PORTAL_VERSION: JSON.stringify(version) },
  logLevel: 'warning',
}

rmSync('dist', { recursive: true, force: true })
await Promise.all([
  build({
    ...shared,
    entryPoints: present,
    splitting: true,
    external: ['pg-native'],
    plugins: [byName(/^(node:)?https?$/)],
    // some bundled CommonJS packages ask for node's own modules by require
    banner: {
      js: "import { createRequire as portalRequire } from 'node:module'; const require = portalRequire(import.meta.url);",
    },
  }),
  // each command is still loaded by itself, out of one file: opening many small ones costs more than reading it
  build({
    ...shared,
    entryPoints: { cli: 'src/cli/main.ts', app: 'src/cli/app.ts', tar: 'src/cli/tar.ts' },
    plugins: [loadedApart, ownByName, byName(/^(node:)?[a-z_/]+$/)],
  }),
])

// the keeper is a shell script, found beside whoever starts it
copyFileSync('src/agent/keeper/keeper.sh', 'dist/keeper.sh')
