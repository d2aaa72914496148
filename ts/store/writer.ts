/**
 * What writers of both geometries share: their facts, and the way from `close` to publication.
 */
import type { DType, DTypeInfo } from '../dtype.js';
import type { Dialect, Schema } from '../schema.js';
import { AppendQueue } from './append-queue.js';
import type { CloseOptions, Codec, DenseReader, RaggedReader } from './capability.js';
import type { OpenedStore } from './container.js';
import type { Handle } from './handle.js';
import { type IntegritySource, makeIntegrity, makeIntegritySync } from './integrity.js';
import { type CreateSettings, closeSettings } from './options.js';
import { type Inspect, inspected, shownFields, shownText } from './shown.js';

export abstract class StoreWriter<D extends DType, S extends Schema> {
  readonly path: string;
  readonly dtype: D;
  readonly codec: Codec;
  readonly dataShards: number;
  readonly hasDict: boolean;
  readonly dialect: Dialect;
  protected readonly queue: AppendQueue;
  protected readonly schema: S;
  readonly #handle: Handle;
  readonly #dict: Uint8Array | undefined;

  constructor(handle: Handle, settings: CreateSettings, schema: S) {
    this.path = handle.path;
    this.dtype = (schema.dtype as DTypeInfo<D>).name;
    this.codec = settings.codec;
    this.dataShards = settings.dataShards;
    this.hasDict = settings.dict !== undefined;
    this.dialect = settings.dialect;
    this.queue = new AppendQueue(handle);
    this.schema = schema;
    this.#handle = handle;
    this.#dict = settings.dict;
  }

  toJSON(): Record<string, unknown> {
    return shownFields(this, ['queue', 'schema']);
  }

  [inspected](_depth: number, options: unknown, inspect: Inspect): string {
    return shownText(this, this.toJSON(), options, inspect);
  }

  /** A reader of the build, for as long as nothing is appended. */
  protected abstract readBack(build: OpenedStore): DenseReader | RaggedReader;

  get length(): number {
    return this.queue.length;
  }

  async close(options?: CloseOptions): Promise<void> {
    const { durable, integrity } = closeSettings(options);
    if (!integrity) return this.queue.close(durable);
    return this.queue.close(durable, async (signal) => {
      const { bytes } = await makeIntegrity(this.#complete(), signal);
      return bytes;
    });
  }

  closeSync(options?: CloseOptions): void {
    const { durable, integrity } = closeSettings(options);
    if (!integrity) this.queue.closeSync(durable);
    else this.queue.closeSync(durable, () => makeIntegritySync(this.#complete()).bytes);
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

  /** The build as it will be published. */
  #complete(): IntegritySource {
    const handle = this.#handle;
    const info = handle.call((native, store) => native.storeInfo(store));
    const storedBytes = Number(info.storedBytes);
    const reader = this.readBack({
      handle,
      schema: this.schema,
      recordCount: Number(info.recordCount),
      storedBytes,
      codec: this.codec,
      dataShards: this.dataShards,
    });
    return { handle, schema: this.schema, reader, storedBytes, dict: this.#dict };
  }
}
