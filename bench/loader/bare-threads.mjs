// @ts-check
// What threads can do at the most with the transform: each runs it on batches of photos that lie in
// its memory, again and again, and there is nothing else to do.
//
//     mode    threads-N
//             threads-N-moved: each thread has moved some memory to another before, as every thread of a pool
//             does. V8's code looks from then on whether an array still has its memory, at each access.
import fs from 'node:fs';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { listen } from '../backends/serve.mjs';
import { ownAnonymousMib } from '../processes.mjs';
import { Workload } from '../workload.mjs';
import { correctColours } from './colour.mjs';

/** More than one, so that none is in the cache when its turn comes. */
const residentBatches = 2;

if (isMainThread) serveThreads();
else work(workerData);

function serveThreads() {
  const bareMib = ownAnonymousMib();
  /** @type {Worker[]} */
  let workers = [];

  const all = async (/** @type {{seconds: number, batches: number}} */ request) => {
    const answers = await Promise.all(workers.map((worker) => askWorker(worker, request)));
    const batchesPerS = answers.reduce((sum, { batches, seconds }) => sum + batches / seconds, 0);
    return { batches: answers.reduce((sum, { batches }) => sum + batches, 0), batchesPerS };
  };

  listen({
    about: () => ({ node: process.version, V8: process.versions.v8 ?? '' }),
    check: () => ({}),
    async start({ workload, mode, batch, seconds, batches }) {
      const baseMib = ownAnonymousMib();
      const [, count, moved] = /^threads-(\d+)(-moved)?$/.exec(mode) ?? [];
      const hasMoved = moved !== undefined;
      workers = Array.from({ length: Number(count) }, (_, index) => {
        const what = { workload, batch, index, hasMoved };
        return new Worker(new URL(import.meta.url), { workerData: what });
      });
      await all({ seconds, batches });
      return { bareMib, baseMib };
    },
    time: all,
    hold: all,
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()));
      workers = [];
      return {};
    },
  });
}

/** @param {Worker} worker @param {unknown} request @returns {Promise<{batches: number, seconds: number}>} */
function askWorker(worker, request) {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.postMessage(request);
  });
}

/** @param {{workload: string, batch: number, index: number, hasMoved: boolean}} what */
function work({ workload: folder, batch, index, hasMoved }) {
  if (hasMoved) {
    const memory = new ArrayBuffer(8);
    structuredClone(memory, { transfer: [memory] });
  }
  const { source, records, recordItems, itemShape } = new Workload(folder);
  const [, height = 0, width = 0] = itemShape;
  const bytes = batch * recordItems;
  const descriptor = fs.openSync(source.file, 'r');
  const resident = Array.from({ length: residentBatches }, (_, each) => {
    const data = new Uint8Array(bytes);
    const number = (index * residentBatches + each) % Math.floor(records / batch);
    const got = fs.readSync(descriptor, data, 0, bytes, source.at + number * bytes);
    if (got !== bytes) throw new Error(`${source.file} has no batch ${number}`);
    return data;
  });
  fs.closeSync(descriptor);
  parentPort?.on('message', ({ seconds, batches }) => {
    const start = performance.now();
    let [count, elapsed] = [0, 0];
    while (elapsed < seconds || count < batches) {
      const data = resident[count % residentBatches];
      if (data !== undefined) correctColours(data, height * width);
      count += 1;
      elapsed = (performance.now() - start) / 1000;
    }
    parentPort?.postMessage({ batches: count, seconds: elapsed });
  });
}
