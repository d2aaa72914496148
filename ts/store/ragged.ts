/**
 * Containers whose records have shapes of their own, all of one rank.
 *
 * A batch is packed ({@link RaggedBatchView}): items of all records back to back, and where each lies.
 */
import { setImmediate } from 'node:timers/promises';
import { type DType, type DTypeInfo, dtypeOf } from '../dtype.js';
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import type { RaggedGeometry, RaggedResult } from '../native/binding.js';
import { gatherInTurn, takeShare } from '../native/turn.js';
import type { NdArray } from '../ndarray.js';
import { dimBytesOf, type RaggedSchema } from '../schema.js';
import type { Turn } from './append-queue.js';
import type {
  Codec,
  CreateOptions,
  OpenOptions,
  RaggedBatch,
  RaggedInput,
  RaggedReader,
  RaggedWriter,
} from './capability.js';
import { createStore, type OpenedStore, openStore, schemaError } from './container.js';
import { knownFields } from './fields.js';
import type { Handle } from './handle.js';
import { keep, take, takeSpare } from './memory.js';
import {
  batchBytesMaxOf,
  type CreateSettings,
  createFields,
  createSettings,
  ndimOf,
  verifyingOf,
} from './options.js';
import { letLanesBegin, Pace } from './pace.js';
import { type ContainerPath, locate } from './path.js';
import { RaggedPacker, type RawRecord, recordGone } from './ragged-pack.js';
import { type Packed, RaggedBatchView, shapeAt, valuesOf } from './ragged-views.js';
import { type CancelWord, StoreReader } from './reader.js';
import { payloadBytesOf, type SizedReader } from './sizes.js';
import { StoreWriter } from './writer.js';
import { PlainArray } from './young.js';

/** What a new ragged container holds. */
export type RaggedCreateOptions<D extends DType> = CreateOptions & {
  /** Of the items. Arrays of another are refused. */
  readonly dtype: D;
  /** Dimensions of each record, 1 .. 64. */
  readonly ndim: number;
};

/** What an opened ragged container is expected to hold. */
export interface RaggedExpected<D extends DType> extends OpenOptions {
  /** Any unless given; another one is SCHEMA. */
  readonly dtype?: D | undefined;
  /** Dimensions of each record, any unless given; others are SCHEMA. */
  readonly ndim?: number | undefined;
}

/** Containers whose records have shapes of their own, all of one rank. */
export const Ragged = {
  /**
   * Begins a build at `path`, whose parents are made. Nothing can be opened there before the
   * writer's `close` has resolved.
   *
   * @throws TypeError, RangeError for options that cannot be; LoaderxError EXISTS when anything is at
   *   the path, LOCKED when a live writer builds there, DICTIONARY, IO, UNSUPPORTED
   */
  create<D extends DType>(path: ContainerPath, options: RaggedCreateOptions<D>): RaggedWriter<D> {
    const location = locate(path);
    const fields = knownFields(options, [...createFields, 'ndim']);
    const dtype = dtypeOf(fields.dtype as D);
    const ndim = ndimOf(fields.ndim);
    const settings = createSettings(fields, dtype);
    const schema: RaggedSchema = { kind: 'ragged', dialect: settings.dialect, dtype, ndim };
    const handle = createStore(location, settings, schema);
    return new RaggedStoreWriter<D>(handle, settings, schema);
  },

  /**
   * Opens a published ragged container.
   *
   * @param expected refuse the container unless it holds this
   * @throws LoaderxError SCHEMA when it holds something else, or is dense; NOT_FOUND, NOT_PUBLISHED,
   *   LOCKED, MALFORMED, DICTIONARY, IO, UNSUPPORTED, INTEGRITY
   */
  open<D extends DType = DType>(
    path: ContainerPath,
    expected?: RaggedExpected<D>,
  ): RaggedReader<D> {
    const fields = knownFields(expected, ['dtype', 'ndim', 'maxBatchBytes', 'verify']);
    const dtype = fields.dtype === undefined ? undefined : dtypeOf(fields.dtype);
    const ndim = fields.ndim === undefined ? undefined : ndimOf(fields.ndim);
    const batchBytesMax = batchBytesMaxOf(fields.maxBatchBytes);
    const opened = openStore(path, verifyingOf(fields.verify));
    try {
      // What is expected was compared with what is there, so D is what the container holds.
      return raggedReader(opened, batchBytesMax, dtype, ndim) as unknown as RaggedReader<D>;
    } catch (error) {
      opened.handle.closeSync();
      throw error;
    }
  },
} as const;

/** A reader of an opened container. Throws SCHEMA when it holds something else than expected. */
export function raggedReader(
  opened: OpenedStore,
  batchBytesMax: number,
  dtype?: DTypeInfo,
  ndim?: number,
): RaggedReader {
  const { schema } = opened;
  const { path } = opened.handle;
  if (schema.kind !== 'ragged') {
    throw schemaError(path, 'kind', 'holds dense records: open it with Dense.open or open');
  }
  if (dtype !== undefined && dtype.name !== schema.dtype.name) {
    throw schemaError(
      path,
      'dtype',
      `holds ${show(schema.dtype.name)}, expected were ${show(dtype.name)}`,
    );
  }
  if (ndim !== undefined && ndim !== schema.ndim) {
    throw schemaError(
      path,
      'ndim',
      `holds records of ${schema.ndim} dimensions, expected were ${ndim}`,
    );
  }
  return new RaggedStoreReader(opened, schema, batchBytesMax);
}

/** Room for batches whose sizes differ a little comes in steps, so that it fits again. */
const stepBytes = 32 * 1024;

class RaggedStoreReader<D extends DType>
  extends StoreReader<D, RaggedBatch<D>, NdArray<D>, RaggedBatch<D>>
  implements RaggedReader<D>, SizedReader
{
  readonly kind = 'ragged';
  readonly ndim: number;
  readonly #info: DTypeInfo<D>;
  readonly #geometry: RaggedGeometry;
  /**
   * Bytes of a record's items as far as is known: the largest mean of a batch so far. At first the
   * mean of what is stored, which is right for raw records and too little for compressed ones.
   */
  #recordBytesMean: number;

  constructor(opened: OpenedStore, schema: RaggedSchema, batchBytesMax: number) {
    const info = schema.dtype as DTypeInfo<D>;
    super(opened, info, batchBytesMax, info.itemBytes);
    this.ndim = schema.ndim;
    this.#info = info;
    this.#geometry = {
      ndim: schema.ndim,
      dimBytes: dimBytesOf(schema.dialect),
      itemBytes: info.itemBytes,
    };
    this.#recordBytesMean = opened.storedBytes / Math.max(1, opened.recordCount);
  }

  protected gatherListSync(ids: BigUint64Array, out: unknown): RaggedBatch<D> {
    const batch = out === undefined ? undefined : this.#checkedOut(out);
    const spare = batch?.beginFill() ?? takeSpare(this.#expectedBytes(ids.length));
    try {
      return this.#finish(this.#readSync(ids, spare), batch);
    } catch (error) {
      if (spare !== undefined) keep(spare);
      batch?.endFill(undefined);
      throw error;
    }
  }

  /**
   * How much memory a batch takes is known only on a lane. Memory that is probably enough goes with
   * the request; otherwise the request comes back for it, which costs two more thread changes.
   */
  protected async gatherList(
    ids: BigUint64Array,
    out: unknown,
    cancel: CancelWord,
  ): Promise<RaggedBatch<D>> {
    const batch = out === undefined ? undefined : this.#checkedOut(out);
    let spare = batch?.beginFill();
    try {
      spare ??= this.#spareFor(ids.length);
      const result = await this.#read(ids, spare, cancel);
      return this.#finish(result, batch);
    } catch (error) {
      if (spare !== undefined) keep(spare);
      batch?.endFill(undefined);
      throw error;
    }
  }

  protected one(ids: BigUint64Array): NdArray<D> {
    const result = this.#readSync(ids, undefined);
    return new PlainArray(
      this.dtype,
      shapeAt(result.dims, this.ndim, 0),
      valuesOf(this.#info, result),
    );
  }

  protected itemBytesOf(ids: BigUint64Array): number {
    let bytes = 0;
    for (const recordBytes of this[payloadBytesOf](ids)) bytes += recordBytes;
    return bytes;
  }

  /** Bytes of each record's items. `ids` are below `length`. */
  [payloadBytesOf](ids: BigUint64Array): number[] {
    this.handle.assertOpen();
    const headerBytes = this.#geometry.ndim * this.#geometry.dimBytes;
    const logical = this.handle.call((native, store) => native.logicalBytesSync(store, ids));
    return Array.from(logical, (bytes) => Math.max(0, Number(bytes) - headerBytes));
  }

  async #read(
    ids: BigUint64Array,
    spare: ArrayBuffer | undefined,
    cancel: CancelWord,
  ): Promise<RaggedResult> {
    if (ids.length === 0) return emptyResult();
    const decodedBytes = this.codec === 'raw' ? 0 : this.#expectedBytes(ids.length);
    return gatherInTurn(decodedBytes, (atOnce) =>
      this.handle.start((native, store) =>
        native.gatherRagged(store, ids, this.#geometry, this.batchBytesMax, spare, cancel, atOnce),
      ),
    );
  }

  #readSync(ids: BigUint64Array, spare: ArrayBuffer | undefined): RaggedResult {
    if (ids.length === 0) return emptyResult();
    return this.handle.call((native, store) =>
      native.gatherRaggedSync(store, ids, this.#geometry, this.batchBytesMax, spare),
    );
  }

  #checkedOut(out: unknown): RaggedBatchView<D> {
    if (!(out instanceof RaggedBatchView)) {
      throw new ArgumentTypeError(
        'out',
        `out must be a batch of a ragged reader, got ${show(out)}`,
      );
    }
    if (out.dtype !== this.dtype || out.ndim !== this.ndim) {
      throw new ArgumentTypeError(
        'out',
        `out holds ${show(out.dtype)} of ${out.ndim} dimensions, and the container ${show(this.dtype)} of ${this.ndim}`,
      );
    }
    return out as RaggedBatchView<D>;
  }

  #expectedBytes(count: number): number {
    return Math.ceil(count * this.#recordBytesMean);
  }

  #spareFor(count: number): ArrayBuffer | undefined {
    const expected = Math.min(this.#expectedBytes(count), this.batchBytesMax);
    if (expected === 0) return undefined;
    const kept = takeSpare(expected);
    if (kept !== undefined) return kept;
    // A little more, since batches differ. Pages that no item comes to cost nothing.
    const room = expected * 1.125;
    return take(room < stepBytes ? Math.ceil(room) : Math.ceil(room / stepBytes) * stepBytes);
  }

  /** A spare buffer that was too small is let go: kept ones grow to what batches need. */
  #finish(packed: Packed, batch: RaggedBatchView<D> | undefined): RaggedBatch<D> {
    const count = packed.offsets.length - 1;
    if (count > 0) {
      this.#recordBytesMean = Math.max(this.#recordBytesMean, packed.payloadBytes / count);
    }
    if (batch === undefined) return new RaggedBatchView(this.#info, this.ndim, packed);
    batch.endFill(packed);
    return batch;
  }
}

function emptyResult(): RaggedResult {
  return {
    buffer: new ArrayBuffer(0),
    payloadBytes: 0,
    offsets: new Uint32Array(1),
    dims: new Uint32Array(0),
  };
}

class RaggedStoreWriter<D extends DType>
  extends StoreWriter<D, RaggedSchema>
  implements RaggedWriter<D>
{
  readonly kind = 'ragged';
  readonly ndim: number;
  readonly #info: DTypeInfo;

  constructor(handle: Handle, settings: CreateSettings, schema: RaggedSchema) {
    super(handle, settings, schema);
    this.ndim = schema.ndim;
    this.#info = schema.dtype;
  }

  protected readBack(build: OpenedStore): RaggedReader {
    return new RaggedStoreReader(build, this.schema, Number.MAX_SAFE_INTEGER);
  }

  async append(records: RaggedInput<D>): Promise<void> {
    this.queue.assertAccepts();
    if (records instanceof RaggedBatchView) {
      this.#assertMatches(records);
      await this.queue.append((turn) => this.#appendBatch(turn, records));
      return;
    }
    const source = recordSource(records);
    await this.queue.append((turn) => this.#appendRecords(turn, source));
  }

  appendSync(records: Iterable<NdArray<D>> | RaggedBatch<D>): void {
    this.queue.assertAccepts();
    if (records instanceof RaggedBatchView) {
      this.#assertMatches(records);
      this.queue.appendSync((turn) => this.#appendBatchSync(turn, records));
      return;
    }
    const source = recordSource(records);
    if (source.isAsync) {
      throw new ArgumentTypeError(
        'records',
        'records is an async iterable, which appendSync cannot wait for: use append',
      );
    }
    this.queue.appendSync((turn) => this.#appendRecordsSync(turn, source));
  }

  async #appendRecords(turn: Turn, source: RecordSource): Promise<number> {
    const packer = this.#packer(source);
    const steps = new Steps(source);
    try {
      const { list } = source;
      if (list !== undefined) {
        const pace = new Pace();
        for (let index = 0; index < list.length; ) {
          const record = list[index];
          if (packer.addPlain(record)) {
            index += 1;
          } else if (packer.isPiece(record)) {
            const count = await appendPieces(turn, packer, list, index, pace);
            index += count;
            // It changed while it was looked at; or it is gone, and with it the rest of the list.
            if (count === 0 && index < list.length) {
              await addChecked(turn, packer, list[index], this.codec);
              index += 1;
            }
          } else {
            await addChecked(turn, packer, record, this.codec);
            index += 1;
          }
        }
      } else {
        turn.pull(() => steps.open());
        for (;;) {
          const step = source.isAsync
            ? await turn.pullAsync(() => steps.nextAsync())
            : turn.pull(() => steps.next());
          if (step.done) break;
          if (!packer.addPlain(step.value)) await addChecked(turn, packer, step.value, this.codec);
        }
      }
      assertSome(packer.recordCount);
      await putWindow(turn, packer);
      return packer.recordCount;
    } catch (error) {
      // As a `for` loop that is left early; what that throws does not hide the reason.
      if (source.isAsync) await turn.leave(() => steps.leaveAsync());
      else steps.leave();
      throw error;
    } finally {
      await turn.settleQuietly();
      packer.release();
    }
  }

  #appendRecordsSync(turn: Turn, source: RecordSource): number {
    const packer = this.#packer(source);
    const steps = new Steps(source);
    try {
      const { list } = source;
      if (list !== undefined) {
        for (let index = 0; index < list.length; ) {
          const record = list[index];
          if (packer.addPlain(record)) {
            index += 1;
          } else if (packer.isPiece(record)) {
            putWindowSync(turn, packer);
            const pieces = packer.takePieces(list, index, piecesBytesMax);
            const count = pieces.items.length;
            if (count > 0) turn.putPiecesSync(pieces);
            index += count;
            // It changed while it was looked at.
            if (count === 0 && index < list.length) {
              addCheckedSync(turn, packer, list[index]);
              index += 1;
            }
          } else {
            addCheckedSync(turn, packer, record);
            index += 1;
          }
        }
      } else {
        turn.pull(() => steps.open());
        for (;;) {
          const step = turn.pull(() => steps.next());
          if (step.done) break;
          if (!packer.addPlain(step.value)) addCheckedSync(turn, packer, step.value);
        }
      }
      assertSome(packer.recordCount);
      putWindowSync(turn, packer);
      return packer.recordCount;
    } catch (error) {
      steps.leave();
      throw error;
    } finally {
      packer.release();
    }
  }

  async #appendBatch(turn: Turn, batch: RaggedBatchView<DType>): Promise<number> {
    const packer = this.#packer();
    try {
      for (const record of rawRecords(batch)) {
        if (packer.isFullFor(record)) {
          await putFullWindow(turn, packer, this.codec);
          // Lanes worked meanwhile, and so did the caller.
          if (record.items.byteLength === 0) throw batchGone();
        }
        packer.assertRecordFits(record);
        packer.add(record);
      }
      await putWindow(turn, packer);
      return packer.recordCount;
    } finally {
      await turn.settleQuietly();
      packer.release();
    }
  }

  #appendBatchSync(turn: Turn, batch: RaggedBatchView<DType>): number {
    const packer = this.#packer();
    try {
      for (const record of rawRecords(batch)) {
        if (packer.isFullFor(record)) putWindowSync(turn, packer);
        packer.assertRecordFits(record);
        packer.add(record);
      }
      putWindowSync(turn, packer);
      return packer.recordCount;
    } finally {
      packer.release();
    }
  }

  #packer(source?: RecordSource): RaggedPacker {
    const takesPieces = this.codec === 'raw' && source?.list !== undefined;
    return new RaggedPacker(this.#info, this.ndim, dimBytesOf(this.dialect), takesPieces);
  }

  #assertMatches(batch: RaggedBatchView<DType>): void {
    batch.assertReady();
    if (batch.dtype !== this.dtype || batch.ndim !== this.ndim) {
      throw new ArgumentTypeError(
        'records',
        `the batch holds ${show(batch.dtype)} of ${batch.ndim} dimensions, and the container ${show(this.dtype)} of ${this.ndim}: nothing is converted`,
      );
    }
    assertSome(batch.length);
  }
}

function assertSome(recordCount: number): void {
  if (recordCount === 0) throw new ArgumentRangeError('records', 'records has no record');
}

function batchGone(): ArgumentRangeError {
  return new ArgumentRangeError(
    'records',
    'the batch was disposed or filled anew while it was appended: nothing of it was kept',
  );
}

/** Adds a record after every check, and after the window that it did not fit into was put. */
async function addChecked(
  turn: Turn,
  packer: RaggedPacker,
  value: unknown,
  codec: Codec,
): Promise<void> {
  const record = packer.checked(value);
  if (packer.isFullFor(record)) {
    await putFullWindow(turn, packer, codec);
    // Lanes worked meanwhile, and so did the caller: the dimensions would not fit the items any more.
    if (record.items.byteLength !== record.itemBytes) throw recordGone(packer.recordCount);
  }
  packer.add(record);
}

function addCheckedSync(turn: Turn, packer: RaggedPacker, value: unknown): void {
  const record = packer.checked(value);
  if (packer.isFullFor(record)) putWindowSync(turn, packer);
  packer.add(record);
}

/** Of one call. */
const piecesBytesMax = 32 * 1024 * 1024;

/**
 * Writes the large records that come next in a list from where they lie, on this thread, and lets the event loop turn
 * after that. How many: none where the next record is no large one any more.
 */
async function appendPieces(
  turn: Turn,
  packer: RaggedPacker,
  list: readonly unknown[],
  from: number,
  pace: Pace,
): Promise<number> {
  await putWindow(turn, packer);
  await turn.settle();
  // Appends that nobody has to wait for would never let the event loop turn.
  if (!takeShare()) await setImmediate();
  // The caller may have run: what was looked at before is looked at again.
  const pieces = packer.takePieces(list, from, pace.bytesMax);
  const count = pieces.items.length;
  if (count === 0) return 0;
  const goesOn = pace.run(() => turn.putPiecesSync(pieces));
  if (!goesOn) packer.packAll();
  if (from + count < list.length) await setImmediate();
  return count;
}

async function putWindow(turn: Turn, packer: RaggedPacker): Promise<void> {
  const window = packer.takeWindow();
  if (window !== undefined) await turn.put(window);
}

/** Puts a window that more records follow. Raw ones are written as fast as they are packed. */
async function putFullWindow(turn: Turn, packer: RaggedPacker, codec: Codec): Promise<void> {
  await putWindow(turn, packer);
  if (codec !== 'raw') await letLanesBegin(turn);
}

function putWindowSync(turn: Turn, packer: RaggedPacker): void {
  const window = packer.takeWindow();
  if (window !== undefined) turn.putSync(window);
}

/** The records of a batch, as bytes. Throws RangeError when the batch loses its memory midway. */
function* rawRecords(batch: RaggedBatchView<DType>): Generator<RawRecord, void, undefined> {
  batch.assertReady();
  const { values, offsets, dims, ndim, length } = batch;
  assertSome(length);
  const whole = values.byteLength;
  for (let index = 0; index < length; index += 1) {
    if (values.byteLength !== whole) throw batchGone();
    batch.assertRecord(index);
    const items = values.subarray(offsets[index] ?? 0, offsets[index + 1] ?? 0);
    yield { dims, dimsAt: index * ndim, items, itemBytes: items.byteLength };
  }
}

interface RecordSource {
  readonly isAsync: boolean;
  /** A list that iterates as lists do: its records by index, which makes no object for each. */
  readonly list?: readonly unknown[];
  /** Calls the caller's `[Symbol.iterator]` or `[Symbol.asyncIterator]`. */
  readonly open: () => unknown;
}

function recordSource(records: unknown): RecordSource {
  if ((typeof records === 'object' || typeof records === 'function') && records !== null) {
    const source = records as Partial<AsyncIterable<unknown> & Iterable<unknown>>;
    const openAsync = source[Symbol.asyncIterator];
    if (typeof openAsync === 'function') {
      return { isAsync: true, open: () => openAsync.call(source) };
    }
    const open = source[Symbol.iterator];
    const isList = Array.isArray(records) && open === Array.prototype.values;
    if (isList) return { isAsync: false, list: records, open: () => records.values() };
    if (typeof open === 'function') return { isAsync: false, open: () => open.call(source) };
  }
  const isArray = typeof records === 'object' && records !== null && 'dtype' in records;
  const hint = isArray ? ': one record is a list of one' : '';
  throw new ArgumentTypeError(
    'records',
    `records must be an iterable of arrays {dtype, shape, data}, got ${show(records)}${hint}`,
  );
}

interface Step {
  readonly done: boolean;
  readonly value: unknown;
}

interface AnyIterator {
  next(): unknown;
  return?(): unknown;
}

/** One pass over a caller's iterable, step by step, without trusting what it returns. */
class Steps {
  readonly #source: RecordSource;
  /** Set while the iterable is owed a `return()`. */
  #iterator: AnyIterator | undefined;

  constructor(source: RecordSource) {
    this.#source = source;
  }

  open(): void {
    this.#iterator = objectOf(this.#source.open(), 'iterator') as AnyIterator;
  }

  next(): Step {
    const iterator = this.#iterator;
    // An iterable that throws or ends is owed nothing more.
    this.#iterator = undefined;
    if (iterator === undefined) return { done: true, value: undefined };
    const step = stepOf(iterator.next());
    if (!step.done) this.#iterator = iterator;
    return step;
  }

  async nextAsync(): Promise<Step> {
    const iterator = this.#iterator;
    if (iterator === undefined) return { done: true, value: undefined };
    try {
      const step = stepOf(await iterator.next());
      if (step.done) this.#iterator = undefined;
      return step;
    } catch (error) {
      this.#iterator = undefined;
      throw error;
    }
  }

  /** Tells the iterable that no more is wanted. What it throws is ignored. */
  leave(): void {
    try {
      this.#iterator?.return?.();
    } catch {
      // The reason for leaving is what counts.
    }
  }

  async leaveAsync(): Promise<void> {
    await this.#iterator?.return?.();
  }
}

function stepOf(result: unknown): Step {
  const { done, value } = objectOf(result, 'iterator result') as Partial<Step>;
  return { done: Boolean(done), value };
}

function objectOf(value: unknown, what: string): object {
  if (typeof value === 'object' && value !== null) return value;
  throw new ArgumentTypeError(
    'records',
    `the ${what} of records must be an object, got ${show(value)}`,
  );
}
