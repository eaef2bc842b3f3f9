/** The archive format, loaded by the commands that need it. */
export { Pack, Unpack } from 'tar'
