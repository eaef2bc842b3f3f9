/**
 * Stands for the agent where only its being there counts: a real process that writes down that it started, looks at its
 * metadata, starts a double-forked child, and stays until it is ended. What it should do otherwise stands in its own folder.
 */
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const [, , bootstrapFile] = process.argv
if (bootstrapFile === undefined) throw new Error('usage: fake-agent BOOTSTRAP')
const folder = dirname(bootstrapFile)
const { agentId } = JSON.parse(readFileSync(bootstrapFile, 'utf8')) as { agentId: string }

if (existsSync(join(folder, 'refuse'))) {
  console.error('this agent refuses to start')
  process.exit(9)
}
// a grandchild in a session of its own, whose parent has ended: what a careless ending leaves behind
const child = `setsid sleep 600 & echo $! > "${join(folder, 'stray.pid')}"`
spawn('sh', ['-c', child], { stdio: 'ignore', detached: true, env: { ...process.env, STRAY_OF: folder } }).unref()
if (existsSync(join(folder, 'wipe')))
  spawn('sh', ['-c', 'sleep 600; :', `${folder}/wiped`], { stdio: 'ignore', detached: true, env: {} }).unref()
writeFileSync(join(folder, 'environment.json'), JSON.stringify(process.env))
appendFileSync(join(folder, 'started'), `${JSON.stringify({ agentId, pid: process.pid })}\n`)
setInterval(() => {
  if (existsSync(join(folder, 'halt'))) process.exit(0)
  if (existsSync(join(folder, 'crash'))) {
    rmSync(join(folder, 'crash'))
    process.kill(process.pid, 'SIGKILL')
  }
}, 20)
