/** A point in time, ms since 1970 UTC. Calendars and zones live at the edges. */
export type Instant = number & { readonly unit?: 'instant_ms' }
/** A length of time in ms. */
export type Duration = number & { readonly unit?: 'duration_ms' }

export const second: Duration = 1000
export const minute: Duration = 60 * second
export const hour: Duration = 60 * minute
export const day: Duration = 24 * hour

/** An instant that does not come, for rows: JSON and SQL know no infinity. */
export const never: Instant = 8_640_000_000_000_000
