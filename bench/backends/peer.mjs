// @ts-check
// What the npm peers share: where their packages are, and the layout of records in those of them
// that store bytes under a key.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** @typedef {import('../workload.mjs').Workload} Workload */
/** @typedef {import('../workload.mjs').Items} Items */

/** Installed by environment.mjs; not a dependency of the package. */
const folder = fileURLToPath(new URL('../../.bench/node/', import.meta.url));

/** A peer's module. @param {string} name of the package, or of a module in it @returns {Promise<any>} */
export async function peer(name) {
  // Resolved from there: this file has none of these packages above it.
  const { load } = await import(pathToFileURL(path.join(folder, 'load.mjs')).href);
  return load(name);
}

/** @param {string} name */
export function peerVersion(name) {
  const file = path.join(folder, 'node_modules', name, 'package.json');
  return { [name]: String(JSON.parse(fs.readFileSync(file, 'utf8')).version) };
}

/** Below this a zeroed array is made faster than one that is not. */
const zeroedBytesMax = 1024;

/** New memory, of whatever kind is made fastest. @param {number} bytes */
export function freshBytes(bytes) {
  if (bytes <= zeroedBytesMax) return new Uint8Array(bytes);
  // Not zeroed, and never a slice of Node's pool.
  return new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer);
}

/** Bytes as the workload's items. @param {Workload} workload @param {Uint8Array} bytes @returns {Items} */
export function itemsOf({ array }, bytes) {
  return /** @type {Items} */ (
    new array(
      /** @type {ArrayBuffer} */ (bytes.buffer),
      bytes.byteOffset,
      bytes.byteLength / array.BYTES_PER_ELEMENT,
    )
  );
}

/**
 * What is stored for a record: its items; ragged, its sizes as u32 before them.
 *
 * @param {Workload} workload
 * @param {number} id
 */
export function packed(workload, id) {
  const bytes = workload.bytes(id);
  if (workload.geometry === 'dense') return bytes;
  const sizes = Buffer.from(Uint32Array.from(workload.shapeOf(id)).buffer);
  return Buffer.concat([sizes, bytes]);
}

/**
 * The modes of a backend that gives the stored bytes of one record after the other, which must be
 * copied: they are valid until the next call.
 *
 * @param {Workload} workload
 * @param {(id: number) => Uint8Array} stored
 * @returns {Record<string, import('./serve.mjs').Mode>}
 */
export function copyingModes(workload, stored) {
  const { geometry, recordItems, itemBytes, ndim } = workload;
  const recordBytes = recordItems * itemBytes;
  if (geometry === 'dense') {
    return {
      fresh: {
        gather: (/** @type {Uint32Array} */ ids) => {
          const batch = freshBytes(ids.length * recordBytes);
          for (let index = 0; index < ids.length; index += 1) {
            // lmdb's buffer is longer than the value in it.
            batch.set(stored(ids[index] ?? 0).subarray(0, recordBytes), index * recordBytes);
          }
          return itemsOf(workload, batch);
        },
        expose: (batch) => batch,
      },
    };
  }
  const sizesBytes = ndim * 4;
  return {
    fresh: {
      gather: (/** @type {Uint32Array} */ ids) => {
        const records = new Array(ids.length);
        for (let index = 0; index < ids.length; index += 1) {
          const bytes = stored(ids[index] ?? 0);
          const sizes = new DataView(bytes.buffer, bytes.byteOffset, sizesBytes);
          const shape = [];
          for (let axis = 0; axis < ndim; axis += 1) shape.push(sizes.getUint32(axis * 4, true));
          const data = freshBytes(bytes.length - sizesBytes);
          data.set(bytes.subarray(sizesBytes, bytes.length));
          records[index] = { shape, data: itemsOf(workload, data) };
        }
        return records;
      },
      expose: (batch) => batch,
    },
  };
}
