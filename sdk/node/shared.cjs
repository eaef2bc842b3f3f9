// @ts-check
'use strict'
/** The memory that the job's thread and the worker share: what stands where. */

module.exports = {
  /** bytes of `control` */
  CONTROL_BYTES: 64,
  /** u8: the agent asks for something */
  ASKED: 0,
  /** u8: the job itself asks for a checkpoint */
  WANTED: 1,
  /** i32 (index): counts the messages for the job's thread, which waits on it */
  WAKE: 1,
  /** i32 (index): goes on as long as the worker lives */
  BEAT: 10,
  /** f64 (index): safe points passed; progress done and total */
  TURNS: 1,
  DONE: 2,
  TOTAL: 3,
  /** the ring that carries bytes between the threads: slots of so many bytes, 64 chunks each */
  SLOTS: 4,
  SLOT_BYTES: 4 << 20,
}
