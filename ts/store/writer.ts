/**
 * What writers of both geometries share: their facts, and the way from `close` to publication.
 */
import type { DType, DTypeInfo } from '../dtype.js';
import type { Dialect } from '../schema.js';
import { AppendQueue } from './append-queue.js';
import type { CloseOptions, Codec } from './capability.js';
import type { Handle } from './handle.js';
import { type CreateSettings, durableOf } from './options.js';

export abstract class StoreWriter<D extends DType> {
  readonly path: string;
  readonly dtype: D;
  readonly codec: Codec;
  readonly dataShards: number;
  readonly hasDict: boolean;
  readonly dialect: Dialect;
  protected readonly queue: AppendQueue;

  constructor(handle: Handle, settings: CreateSettings, dtype: DTypeInfo<D>) {
    this.path = handle.path;
    this.dtype = dtype.name;
    this.codec = settings.codec;
    this.dataShards = settings.dataShards;
    this.hasDict = settings.dict !== undefined;
    this.dialect = settings.dialect;
    this.queue = new AppendQueue(handle);
  }

  get length(): number {
    return this.queue.length;
  }

  async close(options?: CloseOptions): Promise<void> {
    return this.queue.close(durableOf(options));
  }

  closeSync(options?: CloseOptions): void {
    this.queue.closeSync(durableOf(options));
  }

  abort(): void {
    this.queue.abort();
  }

  [Symbol.dispose](): void {
    this.queue.dispose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.queue.disposeAsync();
  }
}
