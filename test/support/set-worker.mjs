// @ts-check
// Opens a set in a worker and tells what records hold.
import { parentPort, workerData } from 'node:worker_threads';
import { loaderx } from './package.mjs';

const reader = loaderx.open(workerData.file);
if (reader.kind === 'dense') {
  const { data } = await reader.gather(workerData.ids);
  parentPort?.postMessage(Array.from(/** @type {Uint8Array} */ (data)));
}
await reader.close();
