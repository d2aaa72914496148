/**
 * Containers whose records all have one shape.
 *
 * A batch is one array `[n, ...itemShape]`: record i of it begins at byte `i × record bytes`.
 */
import { setImmediate } from 'node:timers/promises';
import { types } from 'node:util';
import { type DataOf, type DType, type DTypeInfo, dtypeOf } from '../dtype.js';
import { ArgumentRangeError, LoaderxError, show } from '../errors.js';
import { gatherInTurn, takeShare } from '../native/turn.js';
import { type ArrayParts, arrayParts, type NdArray } from '../ndarray.js';
import { type DenseSchema, recordBytesOf } from '../schema.js';
import type { FileWindow, Turn } from './append-queue.js';
import type {
  CreateOptions,
  DenseBatch,
  DenseReader,
  DenseWriter,
  OpenOptions,
} from './capability.js';
import { createStore, type OpenedStore, openStore, schemaError } from './container.js';
import { DenseBatchView } from './dense-views.js';
import { knownFields } from './fields.js';
import type { Handle } from './handle.js';
import { keep, take } from './memory.js';
import {
  batchBytesMaxOf,
  type CreateSettings,
  createFields,
  createSettings,
  itemShapeOf,
  verifyingOf,
} from './options.js';
import { letLanesBegin, Pace, sliceBytes } from './pace.js';
import { type ContainerPath, locate } from './path.js';
import { type CancelWord, StoreReader } from './reader.js';
import { StoreWriter } from './writer.js';
import { PlainArray } from './young.js';

/** What a new dense container holds. */
export type DenseCreateOptions<
  D extends DType,
  S extends readonly number[] = readonly number[],
> = CreateOptions & {
  /** Of the items. Arrays of another are refused. */
  readonly dtype: D;
  /** Shape of each record: at most 63 positive integers, `[]` for scalars, 2^31 bytes in all. */
  readonly itemShape: S;
};

/** What an opened dense container is expected to hold. */
export interface DenseExpected<D extends DType> extends OpenOptions {
  /** Any unless given; another one is SCHEMA. */
  readonly dtype?: D | undefined;
  /** Sizes of a record, any unless given; others are SCHEMA. */
  readonly itemShape?: readonly number[] | undefined;
}

/** Containers whose records all have one shape. */
export const Dense = {
  /**
   * Begins a build at `path`, whose parents are made. Nothing can be opened there before the
   * writer's `close` has resolved.
   *
   * @throws TypeError, RangeError for options that cannot be; LoaderxError EXISTS when anything is at
   *   the path, LOCKED when a live writer builds there, DICTIONARY, IO, UNSUPPORTED
   */
  create<D extends DType, const S extends readonly number[]>(
    path: ContainerPath,
    options: DenseCreateOptions<D, S>,
  ): DenseWriter<D> {
    const location = locate(path);
    const fields = knownFields(options, [...createFields, 'itemShape']);
    const dtype = dtypeOf(fields.dtype as D);
    const itemShape = itemShapeOf(fields.itemShape, dtype);
    const settings = createSettings(fields, dtype);
    const schema: DenseSchema = { kind: 'dense', dialect: settings.dialect, dtype, itemShape };
    const handle = createStore(location, settings, schema);
    return new DenseStoreWriter<D>(handle, settings, schema);
  },

  /**
   * Opens a published dense container.
   *
   * @param expected refuse the container unless it holds this
   * @throws LoaderxError SCHEMA when it holds something else, or is ragged; NOT_FOUND, NOT_PUBLISHED,
   *   LOCKED, MALFORMED, DICTIONARY, IO, UNSUPPORTED, INTEGRITY
   */
  open<D extends DType = DType>(path: ContainerPath, expected?: DenseExpected<D>): DenseReader<D> {
    const fields = knownFields(expected, ['dtype', 'itemShape', 'maxBatchBytes', 'verify']);
    const dtype = fields.dtype === undefined ? undefined : dtypeOf(fields.dtype);
    const itemShape =
      fields.itemShape === undefined
        ? undefined
        : itemShapeOf(fields.itemShape, dtype ?? dtypeOf('uint8'));
    const batchBytesMax = batchBytesMaxOf(fields.maxBatchBytes);
    const opened = openStore(path, verifyingOf(fields.verify));
    try {
      // What is expected was compared with what is there, so D is what the container holds.
      return denseReader(opened, batchBytesMax, dtype, itemShape) as unknown as DenseReader<D>;
    } catch (error) {
      opened.handle.closeSync();
      throw error;
    }
  },
} as const;

/** A reader of an opened container. Throws SCHEMA when it holds something else than expected. */
export function denseReader(
  opened: OpenedStore,
  batchBytesMax: number,
  dtype?: DTypeInfo,
  itemShape?: readonly number[],
): DenseReader {
  const { schema } = opened;
  const { path } = opened.handle;
  if (schema.kind !== 'dense') {
    throw schemaError(path, 'kind', 'holds ragged records: open it with Ragged.open or open');
  }
  if (dtype !== undefined && dtype.name !== schema.dtype.name) {
    throw schemaError(
      path,
      'dtype',
      `holds ${show(schema.dtype.name)}, expected were ${show(dtype.name)}`,
    );
  }
  if (itemShape !== undefined && !sameShape(itemShape, schema.itemShape)) {
    throw schemaError(
      path,
      'itemShape',
      `holds records of shape ${show(schema.itemShape)}, expected were ${show(itemShape)}`,
    );
  }
  return new DenseStoreReader(opened, schema, batchBytesMax);
}

function sameShape(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((size, axis) => size === other[axis]);
}

class DenseStoreReader<D extends DType>
  extends StoreReader<D, DenseBatch<D>, NdArray<D>, NdArray<D>>
  implements DenseReader<D>
{
  readonly kind = 'dense';
  readonly itemShape: readonly number[];
  readonly #info: DTypeInfo;
  readonly #recordBytes: number;

  constructor(opened: OpenedStore, schema: DenseSchema, batchBytesMax: number) {
    const recordBytes = recordBytesOf(schema.dtype, schema.itemShape);
    super(opened, schema.dtype as DTypeInfo<D>, batchBytesMax, recordBytes);
    this.itemShape = Object.freeze([...schema.itemShape]);
    this.#info = schema.dtype;
    this.#recordBytes = recordBytes;
  }

  get ndim(): number {
    return this.itemShape.length;
  }

  protected gatherListSync(ids: BigUint64Array, out: unknown): DenseBatch<D> | NdArray<D> {
    if (out !== undefined) {
      const { bytes } = this.#outParts(out, ids.length);
      if (ids.length > 0) this.#readSync(ids, bytes);
      return out as NdArray<D>;
    }
    const buffer = take(ids.length * this.#recordBytes);
    try {
      if (ids.length > 0) this.#readSync(ids, buffer);
    } catch (error) {
      keep(buffer);
      throw error;
    }
    return this.#batch(buffer, ids.length);
  }

  protected async gatherList(
    ids: BigUint64Array,
    out: unknown,
    cancel: CancelWord,
  ): Promise<DenseBatch<D> | NdArray<D>> {
    if (out !== undefined) {
      const parts = this.#outParts(out, ids.length);
      if (ids.length > 0) await this.#readInto(ids, parts, cancel);
      return out as NdArray<D>;
    }
    const buffer = take(ids.length * this.#recordBytes);
    try {
      if (ids.length > 0) await this.#read(ids, buffer, cancel);
    } catch (error) {
      keep(buffer);
      throw error;
    }
    return this.#batch(buffer, ids.length);
  }

  protected itemBytesOf(ids: BigUint64Array): number {
    return ids.length * this.#recordBytes;
  }

  protected one(ids: BigUint64Array): NdArray<D> {
    const buffer = take(this.#recordBytes);
    this.#readSync(ids, buffer);
    return new PlainArray(this.dtype, this.itemShape, this.#items(buffer));
  }

  /**
   * Lanes write while JavaScript runs, and JavaScript could detach an ordinary buffer under them. So
   * they write to memory nobody else has, and it is copied when they are done. Shared memory cannot
   * be detached and is written at once.
   */
  async #readInto(ids: BigUint64Array, parts: ArrayParts, cancel: CancelWord): Promise<void> {
    const { bytes, data } = parts;
    const { buffer } = data;
    if (types.isSharedArrayBuffer(buffer) && !isGrowable(buffer)) {
      await this.#read(ids, bytes, cancel);
      return;
    }
    const length = bytes.byteLength;
    const staging = take(length);
    try {
      await this.#read(ids, staging, cancel);
      if (data.byteLength !== length) {
        throw new LoaderxError(
          'INVALID_ARGUMENT',
          `${this.path}: out was detached or resized while it was to be filled`,
          { path: this.path, field: 'out' },
        );
      }
      bytes.set(new Uint8Array(staging, 0, length));
    } finally {
      keep(staging);
    }
  }

  #read(
    ids: BigUint64Array,
    target: Uint8Array | ArrayBuffer,
    cancel: CancelWord,
  ): Promise<unknown> {
    return gatherInTurn(this.codec === 'raw' ? 0 : target.byteLength, (atOnce) =>
      this.handle.start((native, store) =>
        native.gatherFixed(store, ids, this.#recordBytes, target, cancel, atOnce),
      ),
    );
  }

  #readSync(ids: BigUint64Array, target: Uint8Array | ArrayBuffer): void {
    this.handle.call((native, store) =>
      native.gatherFixedSync(store, ids, this.#recordBytes, target),
    );
  }

  #outParts(out: unknown, count: number): ArrayParts {
    const parts = arrayParts(out, 'out', this.#info);
    if (!sameShape(parts.shape, [count, ...this.itemShape])) {
      throw new ArgumentRangeError(
        'out',
        `out has shape ${show(parts.shape)}, and ${count} records make ${show([count, ...this.itemShape])}`,
      );
    }
    return parts;
  }

  #batch(buffer: ArrayBuffer, count: number): DenseBatch<D> {
    return new DenseBatchView(this.dtype, [count, ...this.itemShape], this.#items(buffer));
  }

  #items(buffer: ArrayBuffer): DataOf<D> {
    // The dtype's table entry decides the constructor as DataOf decides its type.
    return new this.#info.constructorOf(buffer) as DataOf<D>;
  }
}

function isGrowable(buffer: SharedArrayBuffer): boolean {
  return (buffer as { readonly growable?: boolean }).growable === true;
}

/** Of a staged slice, unless these are more than four times its bytes. */
const sliceRecordsMin = 128;
/** Slices are whole windows of this many records where they are that long, as Python's are. */
const windowRecords = 32_768;

/** Of records that lie in a file: nothing of them is in memory, and between slices a writer can be aborted. */
const fileSliceBytes = 64 * 1024 * 1024;

/** Records of a raw dense container that lie in a plain file, back to back. */
export type FileRecords = Omit<FileWindow, 'recordBytes'>;

const appendsFile: unique symbol = Symbol('appendsFile');

/**
 * As `append`, of records that lanes copy from a file to the container's: for conversions of this package.
 *
 * @param writer of codec raw
 * @throws LoaderxError as `append`; NOT_FOUND, IO, MALFORMED with the file as `path`, where it cannot be read, is no
 *   plain file or is too short
 */
export function appendFileRecords(writer: DenseWriter<DType>, records: FileRecords): Promise<void> {
  if (!(writer instanceof DenseStoreWriter) || writer.codec !== 'raw') {
    throw new TypeError('records of a file are appended to dense containers of codec raw alone');
  }
  return writer[appendsFile](records);
}

class DenseStoreWriter<D extends DType>
  extends StoreWriter<D, DenseSchema>
  implements DenseWriter<D>
{
  readonly kind = 'dense';
  readonly itemShape: readonly number[];
  readonly #info: DTypeInfo;
  readonly #recordBytes: number;

  constructor(handle: Handle, settings: CreateSettings, schema: DenseSchema) {
    super(handle, settings, schema);
    this.itemShape = schema.itemShape;
    this.#info = schema.dtype;
    this.#recordBytes = recordBytesOf(schema.dtype, schema.itemShape);
  }

  protected readBack(build: OpenedStore): DenseReader {
    return new DenseStoreReader(build, this.schema, Number.MAX_SAFE_INTEGER);
  }

  get ndim(): number {
    return this.itemShape.length;
  }

  async append(batch: NdArray<D>): Promise<void> {
    this.queue.assertAccepts();
    const parts = this.#checked(batch);
    await this.queue.append((turn) => this.#appendParts(turn, parts));
  }

  async [appendsFile]({ recordCount, ...file }: FileRecords): Promise<void> {
    const recordBytes = this.#recordBytes;
    const most = wholeWindows(Math.max(1, Math.floor(fileSliceBytes / recordBytes)));
    await this.queue.append(async (turn) => {
      for (let first = 0; first < recordCount; first += most) {
        await turn.putFile({
          ...file,
          offsetBytes: file.offsetBytes + first * recordBytes,
          recordCount: Math.min(most, recordCount - first),
          recordBytes,
        });
      }
      return recordCount;
    });
  }

  appendSync(batch: NdArray<D>): void {
    this.queue.assertAccepts();
    const parts = this.#checked(batch);
    this.queue.appendSync((turn) => {
      if (types.isSharedArrayBuffer(parts.data.buffer)) return this.#appendShared(turn, parts);
      const recordCount = parts.shape[0] ?? 0;
      turn.putSync({
        records: parts.bytes,
        ends: undefined,
        recordCount,
        recordBytes: this.#recordBytes,
      });
      return recordCount;
    });
  }

  #checked(batch: unknown): ArrayParts {
    const parts = arrayParts(batch, 'batch', this.#info);
    const [count, ...shape] = parts.shape;
    if (count === undefined || !sameShape(shape, this.itemShape)) {
      const hint = sameShape(parts.shape, this.itemShape) ? ': one record is a batch of 1' : '';
      throw new ArgumentRangeError(
        'batch',
        `batch has shape ${show(parts.shape)}, and ${show(['n', ...this.itemShape])} is appended here${hint}`,
      );
    }
    if (count === 0) throw new ArgumentRangeError('batch', 'batch has no records');
    return parts;
  }

  async #appendParts(turn: Turn, parts: ArrayParts): Promise<number> {
    const recordCount = parts.shape[0] ?? 0;
    const isShared = types.isSharedArrayBuffer(parts.data.buffer);
    const first = this.codec === 'raw' && !isShared ? await this.#appendAtOnce(turn, parts) : 0;
    if (first < recordCount) await this.#appendSlices(turn, parts, first);
    return recordCount;
  }

  /** Appends on this thread, with a turn of the event loop after each slice; how many it did. */
  async #appendAtOnce(turn: Turn, parts: ArrayParts): Promise<number> {
    const recordBytes = this.#recordBytes;
    const recordCount = parts.shape[0] ?? 0;
    const pace = new Pace();
    let first = 0;
    // What is larger than a slice would take too long.
    while (recordBytes <= sliceBytes && first < recordCount) {
      // Appends that nobody has to wait for would never let the event loop turn.
      if (!takeShare()) await setImmediate();
      const count = Math.min(Math.floor(pace.bytesMax / recordBytes), recordCount - first);
      assertWhole(parts, (first + count) * recordBytes);
      const records = parts.bytes.subarray(first * recordBytes, (first + count) * recordBytes);
      const goesOn = pace.run(() =>
        turn.putSync({ records, ends: undefined, recordCount: count, recordBytes }),
      );
      first += count;
      if (first < recordCount) await setImmediate();
      if (!goesOn) break;
    }
    return first;
  }

  /**
   * Lanes read while JavaScript runs, and JavaScript could detach or resize the caller's memory under
   * them. So it is copied, slice by slice, into two private buffers in turn: one is filled while the
   * other is written.
   */
  async #appendSlices(turn: Turn, parts: ArrayParts, from: number): Promise<void> {
    const recordBytes = this.#recordBytes;
    const recordCount = parts.shape[0] ?? 0;
    const sliceRecords = sliceRecordsOf(recordBytes);
    const stagingBytes = Math.min(sliceRecords, recordCount - from) * recordBytes;
    const stagings: ArrayBuffer[] = [];
    let turnIndex = 0;
    try {
      for (let first = from; first < recordCount; first += sliceRecords) {
        const count = Math.min(sliceRecords, recordCount - first);
        turnIndex = 1 - turnIndex;
        const staging = stagings[turnIndex] ?? take(stagingBytes);
        stagings[turnIndex] = staging;
        const records = new Uint8Array(staging, 0, count * recordBytes);
        copySlice(parts, first * recordBytes, records);
        await turn.put({ records, ends: undefined, recordCount: count, recordBytes });
        if (this.codec !== 'raw' && first + count < recordCount) await letLanesBegin(turn);
      }
    } finally {
      await turn.settleQuietly();
      for (const staging of stagings) if (staging !== undefined) keep(staging);
    }
  }

  /** Another thread may write to shared memory while it is compressed, so it is copied too. */
  #appendShared(turn: Turn, parts: ArrayParts): number {
    const recordBytes = this.#recordBytes;
    const recordCount = parts.shape[0] ?? 0;
    const sliceRecords = sliceRecordsOf(recordBytes);
    const staging = take(Math.min(sliceRecords, recordCount) * recordBytes);
    try {
      for (let first = 0; first < recordCount; first += sliceRecords) {
        const count = Math.min(sliceRecords, recordCount - first);
        const records = new Uint8Array(staging, 0, count * recordBytes);
        copySlice(parts, first * recordBytes, records);
        turn.putSync({ records, ends: undefined, recordCount: count, recordBytes });
      }
    } finally {
      keep(staging);
    }
    return recordCount;
  }
}

/** At the end of a slice a lane waits for another one's record, so slices hold some of large ones too. */
function sliceRecordsOf(recordBytes: number): number {
  const bytes = Math.min(Math.max(sliceBytes, sliceRecordsMin * recordBytes), 4 * sliceBytes);
  return wholeWindows(Math.max(1, Math.floor(bytes / recordBytes)));
}

function wholeWindows(count: number): number {
  return count <= windowRecords ? count : count - (count % windowRecords);
}

function copySlice(parts: ArrayParts, firstByte: number, target: Uint8Array): void {
  assertWhole(parts, firstByte + target.byteLength);
  target.set(parts.bytes.subarray(firstByte, firstByte + target.byteLength));
}

/** Throws where the caller's memory does not reach to `endByte` any more. */
function assertWhole({ data, bytes }: ArrayParts, endByte: number): void {
  if (data.byteLength === bytes.byteLength && bytes.byteLength >= endByte) return;
  throw new ArgumentRangeError(
    'batch',
    'batch was detached or resized while it was appended: nothing of it was kept',
  );
}
