/**
 * What a writer and a reader can do: the types of the public surface. A writer cannot be read and a
 * reader cannot be appended to, so such calls do not compile.
 */
import type { DataOf, DType, NativeOf } from '../dtype.js';
import type { NdArray } from '../ndarray.js';
import type { Dialect } from '../schema.js';
import type { Ids } from './ids.js';

/**
 * How records are stored: as they are, as zstd frames (level 3), or as zstd frames made with one
 * dictionary. There is no default. `dictBytes` is what {@link trainDict} gives, or any other bytes.
 */
export type CodecOptions =
  | {
      /** As they are, or one zstd frame each. */
      readonly codec: 'raw' | 'zstd';
    }
  | {
      /** One zstd frame each, made with the dictionary. */
      readonly codec: 'zstd_dict';
      /** The dictionary, at most 48 MiB. */
      readonly dictBytes: Uint8Array;
    };

/** The codecs a container can have. */
export type Codec = CodecOptions['codec'];

/** What every new container is told. */
export type CreateOptions = CodecOptions & {
  /** Data files, 1 .. 255; 4 unless given. Near the number of cores is good. */
  readonly dataShards?: number | undefined;
  /** Which Python loaderx reads it: `'2.4'` unless given. */
  readonly dialect?: Dialect | undefined;
};

/** How a container is opened. */
export interface OpenOptions {
  /** A gather whose records have more bytes than this is refused; 4 GiB unless given. */
  readonly maxBatchBytes?: number | undefined;
  /**
   * `'digest'`: everything that is read is held against the container's integrity file, and what it does
   * not vouch for is an error INTEGRITY. Without such a file, or with a damaged one, opening fails.
   * Takes 8 bytes of memory for each record.
   */
  readonly verify?: 'digest' | undefined;
}

/** How a build is published. */
export interface CloseOptions {
  /** Also sync files, folder and parent to the disk before the container appears. */
  readonly durable?: boolean | undefined;
  /**
   * Also give the container an integrity file: checksums of all that is stored, and the logical digest.
   * All records are read again for it before the container appears.
   */
  readonly integrity?: boolean | undefined;
}

/** How records are gathered. */
export interface GatherOptions<Out> {
  /**
   * Memory to fill; it is returned.
   *
   * Dense: any array of this dtype and of shape `[n, ...itemShape]`. `gatherSync` and memory of a
   * `SharedArrayBuffer` are written directly; an asynchronous gather into other memory costs one copy
   * more, because JavaScript could detach that memory under the lanes. When a gather fails, what
   * `out` holds is unspecified.
   *
   * Ragged: an earlier batch of this reader's dtype and rank, whose memory is used when it is large
   * enough. Its old views become empty. When a gather fails, the batch is disposed.
   */
  readonly out?: Out | undefined;
  /** Ends the gather: it rejects with ABORTED once its lanes have stopped. */
  readonly signal?: AbortSignal | undefined;
}

/** A gather into new memory. */
export type GatherNew = GatherOptions<undefined>;

/** A gather into memory that is there already. */
export type GatherInto<Out> = GatherOptions<Out> & {
  /** What is filled and returned. */
  readonly out: Out;
};

/**
 * A build: records go in, in order, and `close` publishes them as one container.
 *
 * Nothing can be opened at the path before `close` has resolved, and nothing is left there when it
 * never does. Un-awaited appends keep their call order. An argument error leaves the writer as it
 * was; any other failed append ends the build, and later calls reject with BUILD_FAILED.
 *
 * A writer that is disposed without `close` discards its build.
 */
export interface Writer<Input, SyncInput = Input> extends AsyncDisposable, Disposable {
  /** Where the container will be, as it was named. */
  readonly path: string;
  /** Records appended so far, those of running appends not counted. */
  readonly length: number;
  /** Dimensions of a record; 0 for scalars. */
  readonly ndim: number;
  /** How records are stored. */
  readonly codec: Codec;
  /** Data files, 1 .. 255. */
  readonly dataShards: number;
  /** Whether there is a dictionary. */
  readonly hasDict: boolean;
  /** Which Python loaderx will read it. */
  readonly dialect: Dialect;
  /**
   * Appends records, all or none. Resolves when they are written. The arrays must not be changed
   * before that.
   *
   * @throws TypeError, RangeError (`code` INVALID_ARGUMENT, TOO_LARGE) for records that do not fit:
   *   the writer is as it was; LoaderxError IO, CODEC, OUT_OF_MEMORY: the build has failed;
   *   BUILD_FAILED after that; CLOSED
   */
  append(batch: Input): Promise<void>;
  /** As `append`, on this thread. Throws BUSY while asynchronous appends run. */
  appendSync(batch: SyncInput): void;
  /**
   * Publishes: waits for queued appends, completes the files, and moves them to the path in one
   * atomic step that never replaces. Calling it again gives the same outcome.
   *
   * Without `durable`, a power cut soon after may take the container away, as with any file; with
   * it, the container is on the disk when the promise resolves.
   *
   * @throws LoaderxError EXISTS when something came to be at the path meanwhile, BUILD_FAILED, IO,
   *   CLOSED after `abort`; nothing is published then, and the build is discarded
   */
  close(options?: CloseOptions): Promise<void>;
  /** As `close`, on this thread. Throws BUSY while asynchronous appends run. */
  closeSync(options?: CloseOptions): void;
  /**
   * Discards the build. Appends that wait reject with CLOSED; native work that runs is waited for
   * in the background. Harmless after `close`, which it cannot undo once publishing has begun.
   */
  abort(): void;
}

/** What readers of both geometries can do. */
export interface Reader<Kind, D extends DType, Batch, One, Out = Batch>
  extends AsyncDisposable,
    Disposable {
  /** `dense` or `ragged`. */
  readonly kind: Kind;
  /** Where the container is, as it was named. */
  readonly path: string;
  /** Of the items. */
  readonly dtype: D;
  /** Dimensions of a record; 0 for scalars. */
  readonly ndim: number;
  /** Records in the container. */
  readonly length: number;
  /** How records are stored; of a set, those of its first container. */
  readonly codec: Codec;
  /** Data files, 1 .. 255; of a set, those of its first container. */
  readonly dataShards: number;
  /** Whether there is a dictionary. */
  readonly hasDict: boolean;
  /** Which Python loaderx reads it; of a set, its first container. */
  readonly dialect: Dialect;
  /**
   * The records of `ids`, in that order. The result is new memory that nobody else holds.
   *
   * @throws TypeError, RangeError (OUT_OF_RANGE) for ids that are not there, before anything is read;
   *   LoaderxError TOO_LARGE over `maxBatchBytes`, MALFORMED, CODEC, IO (with `record` and `file`),
   *   OUT_OF_MEMORY, ABORTED, CLOSED. One failing record fails the whole gather.
   */
  gather(ids: Ids, options?: GatherNew): Promise<Batch>;
  /**
   * Fills `out` and returns it.
   *
   * @throws as without `out`; TypeError, RangeError (INVALID_ARGUMENT) for an `out` of another dtype or shape, or
   *   memory that cannot be written to
   */
  gather<B extends Out>(ids: Ids, options: GatherInto<B>): Promise<B>;
  /** Either of these. */
  gather(ids: Ids, options?: GatherOptions<Out>): Promise<Batch | Out>;
  /** As `gather`, on this thread; throws as it rejects. */
  gatherSync(ids: Ids, options?: GatherNew): Batch;
  /** Fills `out` and returns it; throws as `gather` rejects. */
  gatherSync<B extends Out>(ids: Ids, options: GatherInto<B>): B;
  /** Either of these. */
  gatherSync(ids: Ids, options?: GatherOptions<Out>): Batch | Out;
  /**
   * The records `start`, `start + step`, … before `end`. Ends past the last record are clipped; a
   * negative `step` goes down. A negative start or end is refused: nothing counts from the end.
   *
   * @throws TypeError, RangeError (INVALID_ARGUMENT) for a step of 0 and for what is no integer, RangeError
   *   (OUT_OF_RANGE) for a negative start or end; as `gather`
   */
  slice(start?: number, end?: number, step?: number): Promise<Batch>;
  /**
   * One record, on this thread.
   *
   * @throws as `gather` rejects
   */
  record(id: number): One;
  /**
   * All records in order, `count` at a time (the last batch may be smaller), one read ahead.
   *
   * @throws TypeError, RangeError for a `count` that is no integer of 1 or more; as `gather`
   */
  batches(count: number): AsyncIterable<Batch>;
  /** Refuses new calls at once; resolves when the running ones have ended. */
  close(): Promise<void>;
  /** Closes now. Throws BUSY while calls run. */
  closeSync(): void;
}

/**
 * Dense records in one array of shape `[n, ...itemShape]`. Disposing it gives its memory to the next
 * batch of that size, and empties `data`; without that the memory is collected as any other.
 */
export type DenseBatch<D extends DType = DType> = NdArray<D> &
  Disposable & {
    /** The same records with little-endian numbers. Throws UNSUPPORTED where no typed array fits. */
    toNative(): NdArray<NativeOf<D>>;
  };

/** What {@link RaggedBatch.pad} is told. */
export interface PadOptions {
  /** What fills the gaps. For dtypes held as stored bytes only 0: zero bytes. */
  readonly value: number | bigint;
  /** The padded size: of axis 0 as a number, or of every axis. The largest record's unless given. */
  readonly length?: number | readonly number[] | undefined;
}

/**
 * Ragged records in one packed buffer. Iterating gives a view of each; `values`, `offsets` and `dims`
 * are the packed form itself. Disposing it gives its memory to the next batch.
 */
export interface RaggedBatch<D extends DType = DType> extends Iterable<NdArray<D>>, Disposable {
  /** Of the items. */
  readonly dtype: D;
  /** Axes of every record. */
  readonly ndim: number;
  /** Records in the batch. */
  readonly length: number;
  /** All items, record after record. Empty once the batch is disposed or filled anew. */
  readonly values: DataOf<D>;
  /** Record i is `values.subarray(offsets[i], offsets[i + 1])`; `length + 1` of them. */
  readonly offsets: Uint32Array | Float64Array;
  /** Record i has the shape `dims.subarray(i * ndim, (i + 1) * ndim)`. */
  readonly dims: Uint32Array | Float64Array;
  /** Record `index` as a view, 0 .. length - 1. Throws RangeError OUT_OF_RANGE. */
  at(index: number): NdArray<D>;
  /** Every record as a view. */
  toArray(): NdArray<D>[];
  /**
   * One dense array `[length, ...sizes]` with the gaps filled, and a mask of the same shape that is 1
   * where an item is a record's own.
   *
   * @throws RangeError for a record larger than `length`, or a `value` the dtype cannot hold
   */
  pad(options: PadOptions): {
    /** `[length, ...sizes]`. */
    data: NdArray<D>;
    /** Of the same shape: 1 where an item is a record's own, else 0. */
    mask: NdArray<'bool'>;
  };
  /** The same records with little-endian numbers. Throws UNSUPPORTED where no typed array fits. */
  toNative(): RaggedBatch<NativeOf<D>>;
}

/** Writes records of one shape. `append` takes `[n, ...itemShape]`, n at least 1. */
export interface DenseWriter<D extends DType = DType> extends Writer<NdArray<D>> {
  /** Records of one shape. */
  readonly kind: 'dense';
  /** Of the items. Nothing is converted. */
  readonly dtype: D;
  /** Sizes of a record; `[]` for scalars. */
  readonly itemShape: readonly number[];
}

/** What a ragged writer takes in one append, consumed once. */
export type RaggedInput<D extends DType> =
  | Iterable<NdArray<D>>
  | AsyncIterable<NdArray<D>>
  | RaggedBatch<D>;

/** Writes records whose shapes differ. `append` takes records of rank `ndim`, at least one. */
export interface RaggedWriter<D extends DType = DType>
  extends Writer<RaggedInput<D>, Iterable<NdArray<D>> | RaggedBatch<D>> {
  /** Records of shapes of their own. */
  readonly kind: 'ragged';
  /** Of the items. Nothing is converted. */
  readonly dtype: D;
}

/** Reads records of one shape. */
export interface DenseReader<D extends DType = DType>
  extends Reader<'dense', D, DenseBatch<D>, NdArray<D>, NdArray<D>> {
  /** Sizes of a record; `[]` for scalars. */
  readonly itemShape: readonly number[];
}

/** Reads records whose shapes differ. `ndim` is the rank of each. */
export interface RaggedReader<D extends DType = DType>
  extends Reader<'ragged', D, RaggedBatch<D>, NdArray<D>> {}
