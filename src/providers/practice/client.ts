import { spawn } from 'node:child_process'
import { closeSync, existsSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { second } from '../../core/time/index.ts'
import { messageOf, openLog, privateFolder, readIfThere, tail } from '../files.ts'
import { ProviderError } from '../port.ts'
import { isAlive } from '../processes.ts'
import { cloudMethods, type CloudAddress, type CloudAnswer, type CloudApi, type CloudMethod } from './api.ts'

export interface CloudProgram {
  /** where the cloud keeps everything: `<home>/practice` */
  readonly folder: string
  /** `dist/practice.js`, from source `src/providers/practice/cloud/main.ts` */
  readonly entry: string
  readonly agentEntry: string
}

/** The cloud's process as this one reaches it: found when it runs, started when it does not. */
export class CloudClient {
  readonly #program: CloudProgram
  readonly #onFound: (api: CloudApi) => Promise<void>
  #finding: Promise<CloudAddress> | null = null
  #greeted: string | null = null

  /** @param onFound what is to be told to every cloud before its first call */
  constructor(program: CloudProgram, onFound: (api: CloudApi) => Promise<void>) {
    this.#program = program
    this.#onFound = onFound
  }

  /** The running cloud; null when there is none. */
  async running(): Promise<CloudAddress | null> {
    const text = await readIfThere(join(this.#program.folder, 'cloud.json'))
    const address = text === null ? null : parseAddress(text)
    return address !== null && isAlive(address) ? address : null
  }

  /** Calls the cloud, which is started when it does not run. A call whose answer was lost is made again: each can be repeated. */
  async call<M extends CloudMethod>(
    method: M,
    given: Parameters<CloudApi[M]>,
  ): Promise<Awaited<ReturnType<CloudApi[M]>>> {
    let failed = ''
    for (let attempt = 0; attempt < 4; attempt++) {
      const address = (await this.running()) ?? (await this.#find())
      try {
        await this.#greet(address)
        // the two ends share one interface
        return resultOf(await send(address, method, given)) as Awaited<ReturnType<CloudApi[M]>>
      } catch (error) {
        if (error instanceof ProviderError) throw error
        failed = messageOf(error)
      }
      await sleep(50)
    }
    throw new ProviderError('unreachable', `the practice cloud does not answer ${method}: ${failed}`)
  }

  async #greet(address: CloudAddress): Promise<void> {
    if (this.#greeted === address.token) return
    await this.#onFound(apiOf(async (method, given) => resultOf(await send(address, method, given))))
    this.#greeted = address.token
  }

  /** Ends the running cloud, machines and all, and returns when its process is gone; that there is none is no error. */
  async shutdown(): Promise<void> {
    const address = await this.running()
    await this.call('shutdown', [])
    const patience = Date.now() + 10 * second
    while (isAlive(address)) {
      if (Date.now() > patience) throw new ProviderError('unreachable', 'the practice cloud does not end')
      await sleep(5)
    }
  }

  #find(): Promise<CloudAddress> {
    this.#finding ??= this.#start().finally(() => {
      this.#finding = null
    })
    return this.#finding
  }

  /** Of several that are started at once one holds the lock and writes down where it is; the others end. */
  async #start(): Promise<CloudAddress> {
    const { folder, entry, agentEntry } = this.#program
    if (!existsSync(entry))
      throw new ProviderError('unreachable', `there is no practice cloud at ${entry}: the installation is incomplete`)
    await privateFolder(folder)
    const log = join(folder, 'cloud.log')
    const patience = Date.now() + 20 * second
    let exit: number | string | null = null
    const launch = (): void => {
      exit = null
      const output = openLog(log)
      const child = spawn(process.execPath, [entry, folder, agentEntry], {
        cwd: folder,
        detached: true,
        stdio: ['ignore', output, output],
      })
      closeSync(output)
      child.unref()
      child.on('error', (error) => (exit = messageOf(error)))
      child.on('exit', (code, signal) => (exit = code ?? signal))
    }
    launch()
    for (;;) {
      const address = await this.running()
      if (address !== null) return address
      if ((exit !== null && exit !== 0) || Date.now() > patience)
        throw new ProviderError(
          'unreachable',
          `the practice cloud could not be started (${exit === null ? 'it took too long' : `it ended with ${String(exit)}`}); its log, ${log}, ends in:\n${await tail(log, 800)}`,
        )
      // it found another, which was just ending
      if (exit === 0) launch()
      await sleep(20)
    }
  }
}

/** The cloud's interface over a way to make calls. */
export function apiOf(call: (method: CloudMethod, given: readonly unknown[]) => Promise<unknown>): CloudApi {
  const methods = cloudMethods.map((method) => [method, (...given: readonly unknown[]) => call(method, given)])
  return Object.fromEntries(methods) as CloudApi
}

function resultOf(answer: CloudAnswer): unknown {
  if ('error' in answer) throw new ProviderError(answer.error.kind, answer.error.message)
  return answer.result
}

const send = (address: CloudAddress, method: CloudMethod, given: readonly unknown[]) =>
  new Promise<CloudAnswer>((resolve, reject) => {
    const call = request(
      {
        host: '127.0.0.1',
        port: address.port,
        path: `/${method}`,
        method: 'POST',
        headers: { authorization: `Bearer ${address.token}`, 'content-type': 'application/json' },
        agent: false,
        timeout: 30 * second,
      },
      (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('error', reject)
        response.on('end', () => {
          try {
            resolve(JSON.parse(Buffer.concat(parts).toString('utf8')) as CloudAnswer)
          } catch (error) {
            reject(error)
          }
        })
      },
    )
    call.on('timeout', () => call.destroy(new Error('no answer within 30 s')))
    call.on('error', reject)
    call.end(JSON.stringify(given))
  })

function parseAddress(text: string): CloudAddress | null {
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' && value !== null && 'pid' in value && 'port' in value && 'token' in value
    ? (value as CloudAddress)
    : null
}
