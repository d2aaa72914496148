// @ts-check
// Index sequences over a million records: µs per batch. Beside our sampler a shuffle in plain
// JavaScript: for iid, random numbers; for cyclic, a Fisher-Yates shuffle of all indices, whose cost is
// spread over the batches of a cycle.

import { listen } from '../backends/serve.mjs';
import { Sampler } from '../loaderx.mjs';
import { median } from '../statistics.mjs';

const length = 1_000_000;

listen({
  measure({ batches, seconds }) {
    /** @type {Record<string, number>} */
    const us = {};
    for (const batchSize of batches) {
      for (const mode of /** @type {const} */ (['sequential', 'iid', 'cyclic'])) {
        const sampler = new Sampler({ length, batchSize, mode, seed: 42 });
        us[`ours ${mode} ${batchSize}`] = perCall(seconds, () => sampler.draw());
        sampler.close();
      }
      const ids = new Uint32Array(batchSize);
      us[`js iid ${batchSize}`] = perCall(seconds, () => {
        for (let index = 0; index < batchSize; index += 1) ids[index] = Math.random() * length;
      });
      us[`js cyclic ${batchSize}`] = shuffled(batchSize, seconds);
    }
    return { us };
  },
});

/** @param {number} seconds @param {() => unknown} draw */
function perCall(seconds, draw) {
  const callsPerBlock = 100;
  for (let call = 0; call < callsPerBlock * 3; call += 1) draw();
  const times = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end || times.length < 5) {
    const start = performance.now();
    for (let call = 0; call < callsPerBlock; call += 1) draw();
    times.push(((performance.now() - start) * 1000) / callsPerBlock);
  }
  return median(times);
}

/** @param {number} batchSize @param {number} seconds */
function shuffled(batchSize, seconds) {
  const all = Uint32Array.from({ length }, (_, index) => index);
  const batch = new Uint32Array(batchSize);
  const times = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end || times.length < 3) {
    const start = performance.now();
    for (let index = length - 1; index > 0; index -= 1) {
      const other = Math.floor(Math.random() * (index + 1));
      const held = all[index] ?? 0;
      all[index] = all[other] ?? 0;
      all[other] = held;
    }
    const count = Math.floor(length / batchSize);
    for (let number = 0; number < count; number += 1) {
      batch.set(all.subarray(number * batchSize, (number + 1) * batchSize));
    }
    times.push(((performance.now() - start) * 1000) / count);
  }
  return median(times);
}
