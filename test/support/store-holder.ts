/** Takes the lock of the directory given, says so, and keeps it until it is killed. */
import { spawn } from 'node:child_process'
import { writeSync } from 'node:fs'
import { join } from 'node:path'
import { takeLock } from '../../src/store/index.ts'

takeLock(join(process.argv[2] as string, 'serve.lock'), 1_800_000_000_000)
// whoever it starts must not inherit the lock
const child = spawn('sleep', ['60'], { stdio: 'ignore' })
writeSync(1, `${child.pid}\n`)
setInterval(() => {}, 60_000)
