// @ts-check
// Records of 64 bytes: what one costs in a container of ten thousand and in one of ten million. The
// larger one is beyond the processor's caches, so its table and records come from memory.
import fs from 'node:fs';
import { listen } from '../backends/serve.mjs';
import { Dense, Sampler } from '../loaderx.mjs';
import { median } from '../statistics.mjs';

const itemShape = [64];
const counts = [10_000, 10_000_000];
const recordsPerAppend = 500_000;
const batchSize = 256;
const rounds = 5;

/** @param {string} target @param {number} count */
const pathIn = (target, count) => `${target}/records-${count}`;

listen({
  prepare({ target }) {
    for (const count of counts) {
      const path = pathIn(target, count);
      if (fs.existsSync(path)) continue;
      const writer = Dense.create(path, { dtype: 'uint8', itemShape, codec: 'raw' });
      const rows = Math.min(count, recordsPerAppend);
      const data = new Uint8Array(rows * 64);
      const words = new Uint32Array(data.buffer);
      for (let from = 0; from < count; from += rows) {
        for (let row = 0; row < rows; row += 1) words[row * 16] = from + row;
        writer.appendSync({ dtype: 'uint8', shape: [rows, ...itemShape], data });
      }
      writer.closeSync();
    }
    return {};
  },
  async measure({ target, seconds }) {
    const readers = counts.map((count) => Dense.open(pathIn(target, count), { dtype: 'uint8' }));
    const samplers = counts.map(
      (length) => new Sampler({ length, batchSize, mode: 'iid', seed: 42 }),
    );
    // Warm: every page was seen by this process once.
    for (const reader of readers) {
      for await (const batch of reader.batches(65_536)) batch[Symbol.dispose]();
    }
    const times = counts.map(() => /** @type {number[]} */ ([]));
    for (let round = 0; round < rounds; round += 1) {
      for (const [which, reader] of readers.entries()) {
        const sampler = samplers[which];
        if (sampler === undefined) continue;
        const all = [];
        let total = 0;
        while (total < (seconds * 1000) / rounds) {
          const ids = sampler.draw();
          const start = performance.now();
          const batch = reader.gatherSync(ids);
          const elapsed = performance.now() - start;
          const word = new Uint32Array(batch.data.buffer, 0, 1)[0];
          if (word !== Number(ids[0])) throw new Error(`record ${ids[0]} is ${word}`);
          batch[Symbol.dispose]();
          all.push(elapsed);
          total += elapsed;
        }
        times[which]?.push((median(all) * 1e6) / batchSize);
      }
    }
    const ns = times.map(median);
    for (const reader of readers) reader.closeSync();
    return { counts, nsPerRecord: ns, ratio: (ns[1] ?? 0) / (ns[0] ?? 0) };
  },
});
