// @ts-check
// Opening a container of ten million records: time, and memory of the process.
import fs from 'node:fs';
import { listen } from '../backends/serve.mjs';
import { Dense } from '../loaderx.mjs';
import { median } from '../statistics.mjs';
import { residentMib } from './store.mjs';

const recordCount = 10_000_000;
const recordsPerAppend = 1_000_000;
const opensMax = 20;

/** @param {string} target */
const pathIn = (target) => `${target}/ten-million`;

listen({
  prepare({ target }) {
    const path = pathIn(target);
    if (fs.existsSync(path)) return {};
    const writer = Dense.create(path, { dtype: 'uint32', itemShape: [], codec: 'raw' });
    const data = new Uint32Array(recordsPerAppend);
    for (let from = 0; from < recordCount; from += recordsPerAppend) {
      for (let index = 0; index < recordsPerAppend; index += 1) data[index] = from + index;
      writer.appendSync({ dtype: 'uint32', shape: [recordsPerAppend], data });
    }
    writer.closeSync();
    return {};
  },
  measure({ target }) {
    const path = pathIn(target);
    const before = residentMib();
    const start = performance.now();
    const first = Dense.open(path);
    const firstMs = performance.now() - start;
    const opened = residentMib();
    if (first.length !== recordCount) throw new Error(`${first.length} records`);
    const ids = Uint32Array.from({ length: 256 }, (_, index) => (index * 39_119) % recordCount);
    const batch = first.gatherSync(ids);
    ids.forEach((id, index) => {
      if (Number(batch.data[index]) !== id) throw new Error(`record ${id} differs`);
    });
    const gathered = residentMib();
    first.closeSync();
    const times = [];
    for (let number = 0; number < opensMax; number += 1) {
      const from = performance.now();
      const reader = Dense.open(path);
      times.push(performance.now() - from);
      reader.closeSync();
    }
    return {
      records: recordCount,
      firstMs,
      medianMs: median(times),
      openedMib: opened.anonymous - before.anonymous,
      gatheredMib: gathered.anonymous - before.anonymous,
      filesMib: gathered.files - before.files,
    };
  },
});
