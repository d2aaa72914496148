/**
 * What readers of both geometries share: ids and slices in, batches out, and the handle's life.
 */
import type { DType, DTypeInfo } from '../dtype.js';
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from '../errors.js';
import { cancellable } from '../native/cancel.js';
import type { Dialect } from '../schema.js';
import { signalOf } from '../signal.js';
import type { Codec, GatherInto, GatherNew, GatherOptions } from './capability.js';
import { type JoinedPart, type OpenedReader, type OpenedStore, openedOf } from './container.js';
import { knownFields } from './fields.js';
import type { Handle } from './handle.js';
import {
  checkedId,
  giveIds,
  type IdRange,
  type Ids,
  idArray,
  rangeArray,
  sliceRange,
} from './ids.js';
import { type Inspect, inspected, shownFields, shownText } from './shown.js';
import { type BoundedReader, batchBytesMaxOf } from './sizes.js';
import { type StreamSource, streamOf } from './stream.js';

/** A native gather that `cancel` can end. */
export type CancelWord = Uint32Array | undefined;

export abstract class StoreReader<D extends DType, Batch extends Disposable, One, Out>
  implements BoundedReader, OpenedReader
{
  readonly path: string;
  readonly dtype: D;
  /** Records in the container. */
  readonly length: number;
  readonly codec: Codec;
  readonly dataShards: number;
  readonly hasDict: boolean;
  readonly dialect: Dialect;
  protected readonly handle: Handle;
  protected readonly batchBytesMax: number;
  readonly #opened: OpenedStore;
  readonly #recordBytesMin: number;

  /** `recordBytesMin`: bytes that each record adds to a batch at the least. */
  constructor(
    opened: OpenedStore,
    dtype: DTypeInfo<D>,
    batchBytesMax: number,
    recordBytesMin: number,
  ) {
    this.#opened = opened;
    this.handle = opened.handle;
    this.path = opened.handle.path;
    this.dtype = dtype.name;
    this.length = opened.recordCount;
    this.codec = opened.codec;
    this.dataShards = opened.dataShards;
    this.hasDict = (opened.parts ?? [opened]).some(({ codec }) => codec === 'zstd_dict');
    this.dialect = opened.schema.dialect;
    this.batchBytesMax = batchBytesMax;
    this.#recordBytesMin = recordBytesMin;
  }

  toJSON(): Record<string, unknown> {
    return shownFields(this, ['handle', 'batchBytesMax']);
  }

  [inspected](_depth: number, options: unknown, inspect: Inspect): string {
    return shownText(this, this.toJSON(), options, inspect);
  }

  /** Gathers ids that were checked into new memory, or into `out`, which was not checked yet. */
  protected abstract gatherList(
    ids: BigUint64Array,
    out: unknown,
    cancel: CancelWord,
  ): Promise<Batch | Out>;

  protected abstract gatherListSync(ids: BigUint64Array, out: unknown): Batch | Out;

  /** Bytes of the items of these records, whose ids were checked. */
  protected abstract itemBytesOf(ids: BigUint64Array): number;

  /** One record, whose id was checked. */
  protected abstract one(ids: BigUint64Array): One;

  gather(ids: Ids, options?: GatherNew): Promise<Batch>;
  gather<B extends Out>(ids: Ids, options: GatherInto<B>): Promise<B>;
  gather(ids: Ids, options?: GatherOptions<Out>): Promise<Batch | Out>;
  async gather(ids: Ids, options?: GatherOptions<Out | undefined>): Promise<Batch | Out> {
    this.handle.assertOpen();
    const fields = knownFields(options, ['out', 'signal']);
    const signal = signalOf(fields.signal);
    const { out } = fields;
    const list = idArray(ids, this.length);
    this.#assertFits(list.length);
    return await this.#gatherList(list, out, signal);
  }

  gatherSync(ids: Ids, options?: GatherNew): Batch;
  gatherSync<B extends Out>(ids: Ids, options: GatherInto<B>): B;
  gatherSync(ids: Ids, options?: GatherOptions<Out>): Batch | Out;
  gatherSync(ids: Ids, options?: GatherOptions<Out | undefined>): Batch | Out {
    this.handle.assertOpen();
    const { out } = knownFields(options, ['out', 'signal']);
    const list = idArray(ids, this.length);
    try {
      this.#assertFits(list.length);
      return this.gatherListSync(list, out);
    } finally {
      giveIds(list);
    }
  }

  async slice(start?: number, end?: number, step?: number): Promise<Batch> {
    this.handle.assertOpen();
    return this.#gatherRange(sliceRange(this.length, start, end, step), undefined);
  }

  record(id: number): One {
    this.handle.assertOpen();
    const first = checkedId(id, this.length, 'id', 'id');
    this.#assertFits(1);
    const list = rangeArray({ first, step: 1, count: 1 });
    try {
      return this.one(list);
    } finally {
      giveIds(list);
    }
  }

  batches(count: number): AsyncIterable<Batch> {
    this.handle.assertOpen();
    if (typeof count !== 'number' || !Number.isInteger(count)) {
      throw new ArgumentTypeError('count', `count must be an integer, got ${show(count)}`);
    }
    if (count < 1) {
      throw new ArgumentRangeError('count', `count must be 1 or more, got ${count}`);
    }
    return this.#batches(count);
  }

  close(): Promise<void> {
    return this.handle.close();
  }

  closeSync(): void {
    this.handle.closeSync();
  }

  /** Leaving a scope: new calls are refused, and the container is released when running ones end. */
  [Symbol.dispose](): void {
    void this.handle.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.handle.close();
  }

  /** Of a reader of several containers; else undefined. */
  get parts(): readonly JoinedPart[] | undefined {
    return this.#opened.parts;
  }

  get [openedOf](): OpenedStore {
    return this.#opened;
  }

  get [batchBytesMaxOf](): number {
    return this.batchBytesMax;
  }

  get [streamOf](): StreamSource<Batch> {
    return {
      assertOpen: () => this.handle.assertOpen(),
      gather: (ids, cancel) => this.#gatherDrawn(ids, cancel),
      batchBytes: (ids) => this.itemBytesOf(ids),
    };
  }

  async #gatherDrawn(ids: BigUint64Array, cancel: Uint32Array): Promise<Batch> {
    this.handle.assertOpen();
    this.#assertFits(ids.length);
    // Without `out` the result is a batch of ours.
    return (await this.gatherList(ids, undefined, cancel)) as Batch;
  }

  async *#batches(count: number): AsyncGenerator<Batch, void, undefined> {
    const stop = new AbortController();
    let first = 0;
    const next = (): Promise<Batch> | undefined => {
      if (first >= this.length) return undefined;
      const size = Math.min(count, this.length - first);
      const range = { first, step: 1, count: size };
      first += size;
      const reading = this.#readAhead(range, stop.signal);
      // It may fail while the consumer is busy; it is told when it asks for this batch.
      reading.catch(ignore);
      return reading;
    };
    let ahead = next();
    try {
      while (ahead !== undefined) {
        const batch = await ahead;
        ahead = next();
        yield batch;
      }
    } finally {
      // Left early: the batch ahead is stopped, and nothing runs any more when the loop has ended.
      stop.abort();
      await ahead?.then((batch) => batch[Symbol.dispose](), ignore);
    }
  }

  async #readAhead(range: IdRange, signal: AbortSignal): Promise<Batch> {
    this.handle.assertOpen();
    return this.#gatherRange(range, signal);
  }

  async #gatherRange(range: IdRange, signal: AbortSignal | undefined): Promise<Batch> {
    this.#assertFits(range.count);
    const batch = await this.#gatherList(rangeArray(range), undefined, signal);
    // Without `out` the result is a batch of ours.
    return batch as Batch;
  }

  /** Gathers `ids` and takes them back: nothing reads them any more when the promise settles. */
  async #gatherList(
    ids: BigUint64Array,
    out: unknown,
    signal: AbortSignal | undefined,
  ): Promise<Batch | Out> {
    try {
      return await cancellable(
        signal,
        { path: this.path, what: `the gather of ${ids.length} records` },
        (cancel) => this.gatherList(ids, out, cancel),
        (batch) => {
          if (out === undefined) (batch as Batch)[Symbol.dispose]();
        },
      );
    } finally {
      giveIds(ids);
    }
  }

  #assertFits(count: number): void {
    const bytes = count * this.#recordBytesMin;
    if (bytes <= this.batchBytesMax) return;
    throw new LoaderxError(
      'TOO_LARGE',
      `${this.path}: ${count} records take ${bytes} bytes or more, and maxBatchBytes is ${this.batchBytesMax}: gather fewer at a time, or raise it when opening`,
      { path: this.path },
    );
  }
}

function ignore(): void {}
