import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { messageOf } from '../../files.ts'
import { ProviderError } from '../../port.ts'
import { cloudMethods, type CloudAnswer, type CloudApi, type CloudMethod } from '../api.ts'

/** The cloud's HTTP face: `POST /METHOD` with the arguments as a JSON array, on loopback, for who knows the token. */
export interface CloudServer {
  readonly port: number
  readonly token: string
  close(): void
}

const bodyLimit = 1 << 20

/** @param after called when the answer to a call has been sent */
export async function serve(cloud: CloudApi, after: (method: CloudMethod) => void): Promise<CloudServer> {
  const token = randomBytes(32).toString('base64url')
  const server = createServer((request, response) => {
    void answer(cloud, token, request, response, after)
  })
  // a client that died must not keep the cloud from ending
  server.keepAliveTimeout = 1000
  const port = await listen(server)
  return {
    port,
    token,
    close: () => {
      server.close()
      server.closeIdleConnections()
    },
  }
}

const listen = (server: Server) =>
  new Promise<number>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      if (address !== null && typeof address === 'object') resolve(address.port)
    })
  })

async function answer(
  cloud: CloudApi,
  token: string,
  request: IncomingMessage,
  response: ServerResponse,
  after: (method: CloudMethod) => void,
): Promise<void> {
  const send = (status: number, content: CloudAnswer): void => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(content))
  }
  const refuse = (status: number, error: ProviderError): void =>
    send(status, { error: { kind: error.kind, message: error.message } })

  if (!same(request.headers.authorization ?? '', `Bearer ${token}`))
    return refuse(401, new ProviderError('unauthorized', 'this is not the token of the practice cloud'))
  const method = cloudMethods.find((one) => request.url === `/${one}`)
  if (method === undefined || request.method !== 'POST')
    return refuse(404, new ProviderError('not_found', 'the practice cloud has no such call'))
  try {
    const result = await call(cloud, method, await argumentsOf(request))
    response.once('finish', () => after(method))
    send(200, { result: result ?? null })
  } catch (error) {
    if (error instanceof ProviderError) refuse(400, error)
    else {
      console.error(`${method}:`, error)
      refuse(500, new ProviderError('unreachable', `the practice cloud failed at ${method}: ${messageOf(error)}`))
    }
  }
}

/** The client's calls are typed by the same interface; what else comes over the wire meets the checks of each method. */
function call(cloud: CloudApi, method: CloudMethod, given: readonly unknown[]): Promise<unknown> {
  const named = cloud[method] as (...given: unknown[]) => Promise<unknown>
  return named.apply(cloud, [...given])
}

async function argumentsOf(request: IncomingMessage): Promise<readonly unknown[]> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length
    if (size > bodyLimit) throw new ProviderError('not_found', 'the call is larger than any the practice cloud has')
    parts.push(part)
  }
  const given: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'))
  if (!Array.isArray(given))
    throw new ProviderError('not_found', 'a call to the practice cloud is an array of arguments')
  return given
}

function same(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
