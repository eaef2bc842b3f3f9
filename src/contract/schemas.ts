/**
 * What travels between people's programs and the control plane, checked at the control plane's edge. Instants are ms since
 * 1970 UTC, durations ms, sizes bytes, money decimal strings with a currency. Every string and list has a bound.
 */
export type * from './schemas/values.ts'
export { errorView, limits, moneyView } from './schemas/values.ts'
export * from './schemas/jobs.ts'
export * from './schemas/places.ts'
export * from './schemas/requests.ts'
