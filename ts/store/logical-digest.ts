/**
 * The logical digest: what a container holds, whatever its files look like.
 *
 * It is SHA-256 over this stream, as 64 lower-case hexadecimal digits:
 *
 *     loaderx logical digest 1\n
 *     dense\n  or  ragged\n
 *     DTYPE\n                          its name in this package: float32, numpy:<M8[ns]
 *     SHAPE\n                          dense: the record's sizes with commas between; ragged: the rank
 *     COUNT\n                          number of records
 *     then each record in order        dense: its items
 *                                      ragged: its dimensions, u64 little-endian each, then its items
 *
 * Items are the bytes that the container stores, in C order. Codec, dictionary, shards, dialect, order of
 * payloads and what appends there were leave no trace in it.
 */
import { createHash, type Hash } from 'node:crypto';
import type { DenseBatch, DenseReader, RaggedBatch, RaggedReader } from './capability.js';
import { walk, walkSync } from './walk.js';

/** Ragged records are put together in pieces of about this many bytes: a hash call has a price. */
const slabBytes = 256 * 1024;

/** A logical digest in the making. */
export class LogicalHash {
  readonly #hash: Hash = createHash('sha256');
  #slab = new Uint8Array(0);
  #slabDims = new DataView(new ArrayBuffer(0));
  #used = 0;

  constructor(reader: DenseReader | RaggedReader) {
    const shape = reader.kind === 'dense' ? reader.itemShape.join(',') : String(reader.ndim);
    const lines = ['loaderx logical digest 1', reader.kind, reader.dtype, shape, reader.length];
    this.#hash.update(`${lines.join('\n')}\n`);
  }

  /** The next records. */
  add(batch: DenseBatch | RaggedBatch): void {
    if ('offsets' in batch) this.#addRagged(batch);
    else this.#hash.update(bytesOf(batch.data));
  }

  digest(): string {
    this.#flush();
    return this.#hash.digest('hex');
  }

  #addRagged(batch: RaggedBatch): void {
    const { values, offsets, dims, ndim, length } = batch;
    const bytes = bytesOf(values);
    const elementBytes = values.BYTES_PER_ELEMENT;
    for (let index = 0; index < length; index += 1) {
      const start = (offsets[index] ?? 0) * elementBytes;
      const end = (offsets[index + 1] ?? 0) * elementBytes;
      this.#addDims(dims, index * ndim, ndim);
      this.#addBytes(bytes.subarray(start, end));
    }
  }

  #addDims(dims: Uint32Array | Float64Array, first: number, ndim: number): void {
    this.#reserve(ndim * 8);
    for (let axis = 0; axis < ndim; axis += 1) {
      // A dimension is at most 2^31, so the upper half is zero.
      this.#slabDims.setUint32(this.#used, dims[first + axis] ?? 0, true);
      this.#slabDims.setUint32(this.#used + 4, 0, true);
      this.#used += 8;
    }
  }

  #addBytes(bytes: Uint8Array): void {
    if (bytes.byteLength > slabBytes / 4) {
      this.#flush();
      this.#hash.update(bytes);
      return;
    }
    this.#reserve(bytes.byteLength);
    this.#slab.set(bytes, this.#used);
    this.#used += bytes.byteLength;
  }

  #reserve(bytes: number): void {
    if (this.#slab.byteLength === 0) {
      const buffer = new ArrayBuffer(slabBytes);
      this.#slab = new Uint8Array(buffer);
      this.#slabDims = new DataView(buffer);
    }
    if (this.#used + bytes > slabBytes) this.#flush();
  }

  #flush(): void {
    if (this.#used > 0) this.#hash.update(this.#slab.subarray(0, this.#used));
    this.#used = 0;
  }
}

/** How far a walk over records has come. */
export type OnRecords = (recordsDone: number, itemBytesDone: number) => void;

/**
 * The logical digest of an open container.
 *
 * @throws what a gather throws; LoaderxError ABORTED when `signal` is
 */
export async function digestOf(
  reader: DenseReader | RaggedReader,
  signal?: AbortSignal,
  onRecords?: OnRecords,
): Promise<string> {
  const hash = new LogicalHash(reader);
  let bytesDone = 0;
  for await (const { first, count, batch } of walk(reader, signal)) {
    hash.add(batch);
    bytesDone += itemBytesOf(batch);
    batch[Symbol.dispose]();
    onRecords?.(first + count, bytesDone);
  }
  return hash.digest();
}

/** As `digestOf`, on this thread. */
export function digestOfSync(reader: DenseReader | RaggedReader): string {
  const hash = new LogicalHash(reader);
  for (const { batch } of walkSync(reader)) {
    hash.add(batch);
    batch[Symbol.dispose]();
  }
  return hash.digest();
}

/** Bytes of a batch's items. */
export function itemBytesOf(batch: DenseBatch | RaggedBatch): number {
  return 'offsets' in batch ? batch.values.byteLength : batch.data.byteLength;
}

function bytesOf(data: ArrayBufferView): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
