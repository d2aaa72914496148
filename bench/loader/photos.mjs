// @ts-check
// The photos of the workload, for comparing what a loader delivers with them, and the consumer that
// every loader has. photos.py is the same for Python.
import { createHash } from 'node:crypto';
import { Workload } from '../workload.mjs';
import { correctColours } from './colour.mjs';

/** Bytes of a record are compared in full; these find which record it may be. */
const keyStride = 1009;
const pageBytes = 4096;

/** Records of which the bytes are hashed, so that the driver sees that all backends make the same. */
const hashedRecords = 16;

export class Photos {
  #workload;
  #bytes;
  /** Which records have a key. @type {Map<string, number[]>} */
  #ids = new Map();
  /** Bytes of a record. */
  recordBytes;

  /** @param {string} folder the workload's @param {boolean} isCorrected as the transform makes them */
  constructor(folder, isCorrected) {
    this.#workload = new Workload(folder);
    const { recordItems, itemShape, items, records } = this.#workload;
    const [, height = 0, width = 0] = itemShape;
    this.recordBytes = recordItems;
    this.#bytes = Buffer.from(items.buffer);
    if (isCorrected) correctColours(this.#bytes, height * width);
    for (let id = 0; id < records; id += 1) {
      const key = keyOf(this.#record(id));
      this.#ids.set(key, [...(this.#ids.get(key) ?? []), id]);
    }
  }

  /** Throws unless each record of a batch is one of the photos. @param {Uint8Array} data @param {number} count */
  check(data, count) {
    if (data.length !== count * this.recordBytes) {
      throw new Error(`a batch of ${data.length} bytes, not of ${count} records`);
    }
    for (let index = 0; index < count; index += 1) {
      const from = index * this.recordBytes;
      const record = Buffer.from(data.buffer, data.byteOffset + from, this.recordBytes);
      const ids = this.#ids.get(keyOf(record)) ?? [];
      if (!ids.some((id) => record.equals(this.#record(id)))) {
        throw new Error(`record ${index} of a batch is none of the photos`);
      }
    }
  }

  /** The first records' bytes. @returns {string} hex */
  hash() {
    const bytes = this.#bytes.subarray(0, hashedRecords * this.recordBytes);
    return createHash('sha256').update(bytes).digest('hex');
  }

  /** @param {number} id */
  #record(id) {
    return this.#bytes.subarray(id * this.recordBytes, (id + 1) * this.recordBytes);
  }
}

/** @param {Uint8Array} record */
function keyOf(record) {
  let key = '';
  for (let at = 0; at < record.length; at += keyStride) {
    key += String.fromCharCode(record[at] ?? 0);
  }
  return key;
}

/** What the consumer does with a batch: it reads one byte of each page. @param {Uint8Array} data */
export function consume(data) {
  let sum = 0;
  for (let at = 0; at < data.length; at += pageBytes) sum += data[at] ?? 0;
  return sum;
}
