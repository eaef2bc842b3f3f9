/** How a job's state is kept and carried: where (stores), in what form (chain), and by what conversation with the job (sdk). */
export type * from './chain/model.ts'
export { jobKey } from './chain/key.ts'
export type * from './port.ts'
export type * from './sdk/model.ts'
export { DamageError, StoreError } from './errors.ts'
export type { Damaged, StoreFault } from './errors.ts'
