/**
 * A job whose state cannot be carried: an open connection belongs to the machine that it was opened on.
 *
 *     portal run -d --name linked -- node examples/open-connection.mjs
 *     portal move linked                 # refused: state.link.socket is named, and the job runs on
 */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { job } from 'portal/sdk'

const server = createServer((peer) => peer.pipe(peer)).listen(0, '127.0.0.1')
await once(server, 'listening')
const socket = connect(server.address().port, '127.0.0.1')
await once(socket, 'connect')

const state = await job.state({ step: 0, link: { peer: 'a service', socket } })
for await (const step of job.stepsAsync(state, 'step', 100_000)) {
  socket.write(`${step}`)
  await once(socket, 'data')
  if (step % 100 === 0) console.log(`step ${step}: the connection answers`)
  await sleep(10)
}
process.exit(0)
