/**
 * The types of the addon's functions: what the N-API shim takes and gives.
 *
 * The shim converts and hands over; it decides nothing. Every argument was validated by the facade.
 * Failures are thrown (or rejected with) as {@link NativeFailure}; `errors.ts` turns them into
 * `LoaderxError`.
 *
 * Memory: a buffer given to an asynchronous function must stay private to the facade until the
 * promise settles (user code must not be able to detach or resize it); the shim keeps it alive.
 */

/** Must equal `abiVersion()` of the addon, which is checked at load. */
export const abiVersion = 7;

declare const storeBrand: unique symbol;
declare const samplerBrand: unique symbol;

/** A native store, reader or build. Collecting it releases a reader and discards an unpublished build. */
export interface StoreHandle {
  readonly [storeBrand]: true;
}

/** A native sampler. Collecting it releases it. */
export interface SamplerHandle {
  readonly [samplerBrand]: true;
}

/** What the addon throws: an `Error` with the fields of `zr_error`. */
export interface NativeFailure extends Error {
  /** `ZR_*` of zrecord.h, negative. */
  readonly status: number;
  /** `ZR_FILE_*`: 0 none, 1 folder, 2 meta, 3 data (see `shard`), 4 dict, 5 integrity, 6 what records were taken from. */
  readonly fileKind: number;
  readonly shard?: number;
  /** Of joined stores: which of them `fileKind`, `shard` and `record` are of. */
  readonly part?: number;
  /** A number while it is a safe integer, else a bigint. */
  readonly record?: number | bigint;
  readonly osCode?: string;
}

export interface StoreInfo {
  readonly recordCount: bigint;
  readonly storedBytes: bigint;
  readonly dictBytes: bigint;
  /** A copy. */
  readonly schema: Uint8Array;
  /** 0 raw, 1 zstd, 2 zstd_dict. */
  readonly codec: number;
  readonly dataShards: number;
}

export interface RaggedGeometry {
  readonly ndim: number;
  /** 8 in the 2.4 dialect, 4 in the 2.8 one. */
  readonly dimBytes: 4 | 8;
  readonly itemBytes: number;
}

export interface RaggedResult {
  /** Holds the packed items from byte 0; may be longer than `payloadBytes`. */
  readonly buffer: ArrayBuffer;
  readonly payloadBytes: number;
  /** In items, length + 1; Float64Array once a value passes 2^32 - 1. */
  readonly offsets: Uint32Array | Float64Array;
  /** length x ndim; Float64Array once a value passes 2^32 - 1. */
  readonly dims: Uint32Array | Float64Array;
}

/** What a check found; faults are no failure of the call. */
export interface CheckResult {
  readonly faultCount: number;
  /** Those with the lowest record ids, ascending, at most as many as were asked for. */
  readonly faults: readonly NativeFailure[];
}

export interface Native {
  abiVersion(): number;
  laneCount(): number;
  setLaneCount(count: number): void;
  /** For memory that nobody has touched yet: fewer page faults, where the system can. */
  preferLargePages(memory: ArrayBuffer): void;

  storeCreate(
    path: string | Uint8Array,
    codec: number,
    dataShards: number,
    schema: Uint8Array,
    dict: Uint8Array | undefined,
  ): StoreHandle;
  storeOpen(path: string | Uint8Array): StoreHandle;
  /**
   * Readers as one: their records one after the other. They stay open as long as it is, whoever closes
   * them. Only gathers, `logicalBytesSync`, `storeInfo` and `closeSync` take it.
   *
   * @param dimBytes of each ragged reader, which may differ: logical bytes are told as the first one
   *   counts them; zeros for dense ones
   * @param ndim of ragged readers; else 0
   */
  storeJoin(readers: readonly StoreHandle[], dimBytes: Uint8Array, ndim: number): StoreHandle;
  storeInfo(store: StoreHandle): StoreInfo;

  /** `ends` undefined: fixed records of `recordBytes`; else record i ends at `ends[i]`. */
  appendSync(
    store: StoreHandle,
    records: Uint8Array,
    ends: BigUint64Array | undefined,
    recordCount: number,
    recordBytes: number,
  ): void;
  /** Raw builds only: record i is `headerBytes` of `headers`, and then the bytes of `items[i]`. */
  appendPiecesSync(
    store: StoreHandle,
    headers: Uint8Array,
    headerBytes: number,
    items: readonly ArrayBufferView[],
    recordCount: number,
  ): void;
  append(
    store: StoreHandle,
    records: Uint8Array,
    ends: BigUint64Array | undefined,
    recordCount: number,
    recordBytes: number,
  ): Promise<void>;
  /** Of a raw build: records of `recordBytes` that lie back to back in a plain file, from `offsetBytes` on. */
  appendFile(
    store: StoreHandle,
    path: string | Uint8Array,
    offsetBytes: number,
    recordCount: number,
    recordBytes: number,
  ): Promise<void>;
  mark(store: StoreHandle): void;
  rewind(store: StoreHandle): void;

  /** `integrity`: what integrity.zr is to hold; undefined: there is to be none. */
  publishSync(store: StoreHandle, durable: boolean, integrity: Uint8Array | undefined): void;
  publish(store: StoreHandle, durable: boolean, integrity: Uint8Array | undefined): Promise<void>;

  // Gathers and checks take a build too, while nothing is appended to it.

  /**
   * `cancel`: element 0 becomes non-zero to give up. `atOnce`: a small gather of a container that is in
   * memory may be done before the call returns, which then gives no promise.
   */
  gatherFixedSync(
    store: StoreHandle,
    ids: BigUint64Array,
    recordBytes: number,
    target: Uint8Array | ArrayBuffer,
  ): void;
  gatherFixed(
    store: StoreHandle,
    ids: BigUint64Array,
    recordBytes: number,
    target: Uint8Array | ArrayBuffer,
    cancel: Uint32Array | undefined,
    atOnce: boolean,
  ): Promise<void> | undefined;
  /** `spare`: a private buffer to fill when it is large enough; else memory is made. */
  gatherRaggedSync(
    store: StoreHandle,
    ids: BigUint64Array,
    geometry: RaggedGeometry,
    payloadBytesMax: number,
    spare: ArrayBuffer | undefined,
  ): RaggedResult;
  gatherRagged(
    store: StoreHandle,
    ids: BigUint64Array,
    geometry: RaggedGeometry,
    payloadBytesMax: number,
    spare: ArrayBuffer | undefined,
    cancel: Uint32Array | undefined,
    atOnce: boolean,
  ): Promise<RaggedResult> | RaggedResult;
  /** Logical bytes of each record (dimensions included), without reading payloads. */
  logicalBytesSync(store: StoreHandle, ids: BigUint64Array): BigUint64Array;

  /** The first 4096 bytes of meta.zr: as they are on disk now, or as they would be published. */
  storePage(store: StoreHandle): Uint8Array;
  /** Readers: from now on each gathered record is held against its word. All words; copied. */
  storeExpect(store: StoreHandle, words: BigUint64Array): void;
  /**
   * Looks at records `first` to `first + count` as a gather would, and does not stop at a fault.
   *
   * @param recordBytes of dense records; 0 with `geometry`
   * @param wordsUse 0 none, 1 they are compared, 2 they are made
   * @param words of the blocks (4096 records, one word more) that hold the range
   * @param skip bit i % 8 of byte i / 8: record first + i is left out
   */
  checkRecordsSync(
    store: StoreHandle,
    first: number,
    count: number,
    recordBytes: number,
    geometry: RaggedGeometry | undefined,
    wordsUse: 0 | 1 | 2,
    words: BigUint64Array | undefined,
    skip: Uint8Array | undefined,
    faultsMax: number,
  ): CheckResult;
  checkRecords(
    store: StoreHandle,
    first: number,
    count: number,
    recordBytes: number,
    geometry: RaggedGeometry | undefined,
    wordsUse: 0 | 1 | 2,
    words: BigUint64Array | undefined,
    skip: Uint8Array | undefined,
    faultsMax: number,
    cancel: Uint32Array | undefined,
  ): Promise<CheckResult>;
  /**
   * Looks at all locations together.
   *
   * @param over zeros; the bit of each record that lies over another is set
   * @param unused for each shard: becomes the bytes below its tail that no record names
   */
  checkLayout(
    store: StoreHandle,
    over: Uint8Array,
    unused: BigUint64Array,
    faultsMax: number,
    cancel: Uint32Array | undefined,
  ): Promise<CheckResult>;

  /** Idempotent; wants no call in flight. */
  closeSync(store: StoreHandle): void;

  /**
   * Packed records to one dense array: every byte of `target` and `mask` is written.
   *
   * @param dims a whole number of times as many as `sizes`, which has one for each axis
   * @param item what fills the gaps
   * @param mask a byte for each item of `target`
   */
  pad(
    values: Uint8Array,
    dims: BigUint64Array,
    sizes: BigUint64Array,
    item: Uint8Array,
    target: Uint8Array,
    mask: Uint8Array,
  ): void;

  /** Samples back to back in `samples`, sample i has `sampleBytes[i]`. */
  trainDict(
    samples: Uint8Array,
    sampleBytes: BigUint64Array,
    dictBytesMax: number,
  ): Promise<Uint8Array>;

  /**
   * zstd frames of other files, decompressed; neither array is empty.
   *
   * @returns how many bytes of `target` they fill
   */
  decompressFrame(source: Uint8Array, target: Uint8Array): number;

  /** mode 0 sequential, 1 iid, 2 cyclic; stream 24 or 28. */
  samplerCreate(
    length: bigint,
    batchSize: bigint,
    seed: bigint,
    mode: number,
    stream: number,
  ): SamplerHandle;
  samplerBatch(sampler: SamplerHandle): number;
  samplerStep(sampler: SamplerHandle): bigint;
  /** `ids` holds at least `samplerBatch` elements. */
  samplerDraw(sampler: SamplerHandle, ids: BigUint64Array): void;
  samplerSeekSync(sampler: SamplerHandle, step: bigint): void;
  samplerSeek(sampler: SamplerHandle, step: bigint, cancel: Uint32Array | undefined): Promise<void>;
  samplerClose(sampler: SamplerHandle): void;
}
