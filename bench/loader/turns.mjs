// @ts-check
// Timing a consumer: one turn is from asking for a batch until the consumer is done with it.
import { summary } from '../backends/serve.mjs';

/**
 * @param {() => Promise<unknown>} turn
 * @param {number} seconds at least
 * @param {number} turnsMin
 * @returns {Promise<number[]>} ms of each turn
 */
export async function runFor(turn, seconds, turnsMin) {
  /** @type {number[]} */
  const times = [];
  const start = performance.now();
  let last = start;
  while (last - start < seconds * 1000 || times.length < turnsMin) {
    await turn();
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  return times;
}

/** @param {readonly number[]} times ms */
export function timesOf(times) {
  const { calls, ...rest } = summary(times);
  return { batches: calls, batchesPerS: calls / rest.seconds, ...rest };
}
