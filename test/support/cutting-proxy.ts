import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** Where a connection to PostgreSQL is cut: before a COMMIT reaches the server, or when the answer to it comes back. */
export type Cut = 'never' | 'at the first write' | 'before commit' | 'after commit'

/** A TCP proxy in front of PostgreSQL that cuts a connection once, at the point it is told to. */
export interface CuttingProxy {
  readonly port: number
  /** Cuts the next connection that comes to this point, and none after it. */
  cutOnce(where: Cut): void
  close(): Promise<void>
}

export async function cuttingProxy(to: number): Promise<CuttingProxy> {
  let cut: Cut = 'never'
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(to, '127.0.0.1')
    let answersTo: Cut = 'never'
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    const cutHere = () => {
      cut = 'never'
      client.destroy()
      upstream.destroy()
    }
    client.on('data', (bytes) => {
      const commits = bytes.includes('commit\0')
      if (commits && cut === 'before commit') return cutHere()
      if (bytes.includes('insert into') && cut === 'at the first write') return cutHere()
      if (commits && cut === 'after commit') answersTo = cut
      return upstream.write(bytes)
    })
    upstream.on('data', (bytes) => (answersTo === 'after commit' ? cutHere() : client.write(bytes)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    cutOnce: (where) => {
      cut = where
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
