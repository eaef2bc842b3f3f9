/**
 * Where `portal` starts. What it needs is loaded after the compile cache is on, so that a start costs little more than
 * Node's own: this file must stay without imports of its own code.
 */
import { enableCompileCache } from 'node:module'

// the directory is the system's, not PORTAL_HOME: asking for help must not make a data directory
enableCompileCache()
const { main } = await import('./app.ts')
await main(process.argv.slice(2))
