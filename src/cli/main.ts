/**
 * Where `portal` starts. What it needs is loaded after the compile cache is on, so that a start costs little more than
 * Node's own: nothing of Portal's may be imported here.
 */
import { enableCompileCache } from 'node:module'

const { HOME, XDG_CACHE_HOME } = process.env
const caches = XDG_CACHE_HOME?.startsWith('/') ? XDG_CACHE_HOME : HOME && `${HOME}/.cache`
// never Node's own default, which lies in a folder that others can write to: what is cached there is run as it is found
if (caches) enableCompileCache(`${caches}/portal`)

const { main } = await import('./app.ts')
await main(process.argv.slice(2))
