// @ts-check
/**
 * Portal's SDK for jobs in Node.
 *
 *     import { job } from 'portal/sdk'
 *     const state = await job.state({ step: 0, model })
 *     for (const step of job.steps(state, 'step', 10_000)) train(state.model, step)
 */
import { Job } from './job.js'

export const job = new Job()
