import { value } from './define.ts'
import { bytes, cpus, gpus } from './parse.ts'

/** What a job needs of a machine, as flags. */
export interface NeedFlags {
  readonly on?: string
  readonly cpu?: number
  readonly memory?: number
  readonly disk?: number
  readonly gpu?: { readonly model: string; readonly count: number }
  readonly image?: string
}

export const needFlags = {
  on: value('where: a connection, a region …, or one offer spelled out, which pins it', 'PATTERN'),
  cpu: { kind: 'parsed', parse: cpus, brief: 'CPU cores', placeholder: 'CORES', optional: true },
  memory: { kind: 'parsed', parse: bytes, brief: 'memory, as 8GiB', placeholder: 'SIZE', optional: true },
  disk: { kind: 'parsed', parse: bytes, brief: 'disk, as 50GB', placeholder: 'SIZE', optional: true },
  gpu: { kind: 'parsed', parse: gpus, brief: 'GPUs, as A100 or A100:2', placeholder: 'MODEL[:N]', optional: true },
  image: value('a container image', 'IMAGE'),
} as const

/** The needs as the control plane takes them; what was not asked for is left out. */
export const needsOf = ({ cpu, memory, disk, gpu, image }: NeedFlags) => ({
  ...(cpu === undefined ? {} : { cpus: cpu }),
  ...(memory === undefined ? {} : { memoryBytes: memory }),
  ...(disk === undefined ? {} : { diskBytes: disk }),
  ...(gpu === undefined ? {} : { gpus: gpu }),
  ...(image === undefined ? {} : { image }),
})
