/** Bundles what is started often, so that it starts fast: the command line, the control plane, the agent, the practice cloud. */
import { build } from 'esbuild'
import { copyFileSync, existsSync, rmSync } from 'node:fs'

const entries = {
  cli: 'src/cli/main.ts',
  control: 'src/control/main.ts',
  agent: 'src/agent/main.ts',
  practice: 'src/providers/practice/cloud/main.ts',
}
const present = Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(file)))

rmSync('dist', { recursive: true, force: true })
await build({
  entryPoints: present,
  outdir: 'dist',
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  sourcemap: 'linked',
  logLevel: 'warning',
  external: ['pg-native'],
  // some bundled CommonJS packages ask for node's own modules by require
  banner: {
    js: "import { createRequire as portalRequire } from 'node:module'; const require = portalRequire(import.meta.url);",
  },
})

// the keeper is a shell script, found beside whoever starts it
copyFileSync('src/agent/keeper/keeper.sh', 'dist/keeper.sh')
