// @ts-check
// The first batches after the files' pages were dropped: through maps, or, with LOADERX_MAP=0 in the
// environment, by positional reads.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { listen, summary } from '../backends/serve.mjs';
import { limitsProgram } from '../paths.mjs';
import { batches, denseStore, openAny } from './store.mjs';

const batchCount = 5;

listen({
  prepare({ workload, target, codec }) {
    denseStore(workload, target, codec);
    return {};
  },
  async measure({ workload: folder, target, codec, round }) {
    const { path: container, workload } = denseStore(folder, target, codec);
    const files = fs.readdirSync(container).map((name) => path.join(container, name));
    const { stdout, stderr, status } = spawnSync(limitsProgram(false), ['what=evict', ...files], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`cannot drop the files' pages: ${stderr}`);
    const evicted = JSON.parse(stdout);
    const plan = batches(workload);
    // Other batches in every round, all of them the same for both ways.
    for (let skip = 0; skip < round * batchCount; skip += 1) plan.next();
    const reader = openAny(container);
    const times = [];
    for (let number = 0; number < batchCount; number += 1) {
      const ids = plan.next().value;
      const start = performance.now();
      const batch = await reader.gather(ids);
      times.push(performance.now() - start);
      batch[Symbol.dispose]();
    }
    await reader.close();
    return { ...summary(times), residentShare: evicted.residentBytes / evicted.bytes };
  },
});
