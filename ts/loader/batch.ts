/**
 * A batch: what each stream gave for the same ids, by the streams' names.
 */
import type { DenseBatch, DenseReader, RaggedBatch, RaggedReader } from '../store/capability.js';
import { itemBytesOf, memoryOf } from '../store/hand-over.js';
import type { StreamSource } from '../store/stream.js';

/** What a loader reads: an open reader of either geometry. */
export type Stream = DenseReader | RaggedReader;

/** The batch of one stream. */
export type StreamBatch<T> =
  T extends DenseReader<infer D>
    ? DenseBatch<D>
    : T extends RaggedReader<infer D>
      ? RaggedBatch<D>
      : never;

/**
 * The batch of several streams: one property for each, gathered at the same ids, so record i of one
 * belongs to record i of the others. Disposing it disposes of them all, which gives their memory to
 * later batches and empties them.
 */
export type BatchOf<S extends Readonly<Record<string, Stream>>> = {
  readonly [Name in keyof S]: StreamBatch<S[Name]>;
} & Disposable;

/** What a stream's batch is, whatever it holds. */
export type AnyStreamBatch = DenseBatch | RaggedBatch;

/** One stream, as a loader reads it. */
export interface NamedStream {
  readonly name: string;
  readonly source: StreamSource<AnyStreamBatch>;
}

/** A `BatchOf` as it is at run time: an own property for each stream, whatever it is called. */
export class Batch implements Disposable {
  constructor(entries: Iterable<readonly [string, unknown]>) {
    for (const [name, value] of entries) {
      Object.defineProperty(this, name, {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
  }

  [Symbol.dispose](): void {
    for (const value of Object.values(this)) {
      if (memoryIn(value) !== undefined) (value as AnyStreamBatch)[Symbol.dispose]();
    }
  }
}

/**
 * Gathers the records of `ids` from every stream.
 *
 * @param cancel element 0 becomes 1 to give up; it does by itself when one stream fails
 * @throws what the first stream to fail rejected with, when all have ended
 */
export async function gatherBatch(
  streams: readonly NamedStream[],
  ids: BigUint64Array,
  cancel: Uint32Array,
): Promise<Batch> {
  let failure: { readonly error: unknown } | undefined;
  const parts = await Promise.all(
    streams.map(async ({ name, source }) => {
      try {
        return [name, await source.gather(ids, cancel)] as const;
      } catch (error) {
        failure ??= { error };
        Atomics.store(cancel, 0, 1);
        return undefined;
      }
    }),
  );
  const batch = new Batch(parts.filter((part) => part !== undefined));
  if (failure === undefined) return batch;
  batch[Symbol.dispose]();
  throw failure.error;
}

/** Bytes of the items of the streams' batches that `value`, a batch or an object of them, holds. */
export function bytesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  const own = itemBytesOf(value);
  if (own > 0) return own;
  let bytes = 0;
  for (const part of Object.values(value)) {
    if (typeof part !== 'object' || part === null) continue;
    if (ArrayBuffer.isView(part)) bytes += part.byteLength;
    else bytes += itemBytesOf(part) || dataBytesOf(part);
  }
  return bytes;
}

/** Bytes of an array `{dtype, shape, data}`. */
function dataBytesOf(value: object): number {
  const { data } = value as { readonly data?: unknown };
  return ArrayBuffer.isView(data) ? data.byteLength : 0;
}

function memoryIn(value: unknown): ArrayBufferLike | undefined {
  return typeof value === 'object' && value !== null ? memoryOf(value) : undefined;
}

/**
 * Counts the buffers of batches that somebody still has, without keeping any alive: one that was
 * disposed of or moved to another thread is empty, and one that was dropped is gone.
 */
export class BufferCensus {
  #refs: WeakRef<ArrayBufferLike>[] = [];
  /** The list is looked through when it is this long, so that adding costs little on average. */
  #sweepAt = 64;

  /** Adds the buffers of `value`: a stream's batch, a batch, or an object that holds some. */
  add(value: unknown): void {
    this.#add(value, 2);
    if (this.#refs.length >= this.#sweepAt) this.#sweepAt = 64 + 2 * this.alive();
  }

  #add(value: unknown, levels: number): void {
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
    const memory = memoryOf(value);
    if (memory !== undefined) this.#refs.push(new WeakRef(memory));
    else if (levels > 0) for (const part of Object.values(value)) this.#add(part, levels - 1);
  }

  alive(): number {
    this.#refs = this.#refs.filter((ref) => (ref.deref()?.byteLength ?? 0) > 0);
    return this.#refs.length;
  }
}
