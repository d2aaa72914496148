// @ts-check
// What the plain ways share: all items back to back in one file, and where each record begins known
// in memory. That is less than a container has to do, and so a yardstick.
import fs from 'node:fs';
import { freshBytes, itemsOf } from './peer.mjs';

/** @typedef {import('../workload.mjs').Workload} Workload */

/** @param {string} target */
export const fileIn = (target) => `${target}/items.bin`;

/** @param {import('./serve.mjs').Job} job */
export async function preparePlainWrite({ workload, target }) {
  const { items } = workload;
  const bytes = new Uint8Array(items.buffer, items.byteOffset, items.byteLength);
  return () => fs.writeFileSync(fileIn(target), bytes);
}

/**
 * @param {Workload} workload
 * @param {(target: Uint8Array, at: number, from: number, bytes: number) => void} fill reads `bytes`
 *   bytes of the file, from byte `from`, into the target
 * @returns {Record<string, import('./serve.mjs').Mode>}
 */
export function plainModes(workload, fill) {
  const starts = Float64Array.from(
    { length: workload.records + 1 },
    (_, id) => workload.start(id) * workload.itemBytes,
  );
  const kept = new Uint8Array(workload.batchBytesMax());
  const into = (/** @type {Uint32Array} */ ids, /** @type {Uint8Array} */ target) => {
    let at = 0;
    for (let index = 0; index < ids.length; index += 1) {
      const id = ids[index] ?? 0;
      const from = starts[id] ?? 0;
      const bytes = (starts[id + 1] ?? 0) - from;
      fill(target, at, from, bytes);
      at += bytes;
    }
    return { ids, target };
  };
  const bytesOf = (/** @type {Uint32Array} */ ids) => {
    let bytes = 0;
    for (let index = 0; index < ids.length; index += 1) {
      const id = ids[index] ?? 0;
      bytes += (starts[id + 1] ?? 0) - (starts[id] ?? 0);
    }
    return bytes;
  };
  const expose = (/** @type {{ids: Uint32Array, target: Uint8Array}} */ { ids, target }) => {
    if (workload.geometry === 'dense') return itemsOf(workload, target);
    let at = 0;
    return Array.from(ids, (id) => {
      const bytes = workload.bytesOf(id);
      at += bytes;
      return {
        shape: workload.shapeOf(id),
        data: itemsOf(workload, target.subarray(at - bytes, at)),
      };
    });
  };
  return {
    fresh: { expose, gather: (ids) => into(ids, freshBytes(bytesOf(ids))) },
    kept: { expose, gather: (ids) => into(ids, kept) },
  };
}
